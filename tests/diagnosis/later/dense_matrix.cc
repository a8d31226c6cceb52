// SPDX-License-Identifier: MIT
// Distances within clusters as dense matrices. The clusters are small, but for the one of everything that fits nowhere.
#include <numeric>
#include <vector>

extern "C" {
#include "../../apps/gpu.h"
}

template <typename T> class Matrix {
	T *p = nullptr;

public:
	Matrix(size_t rows, size_t columns)
	{
		if (int error = cudaMalloc(reinterpret_cast<void **>(&p), rows * columns * sizeof(T))) {
			fprintf(stderr, "matrix of %zu x %zu: %d\n", rows, columns, error);
			std::exit(2);
		}
	}
	~Matrix() { cudaFree(p); }
};

static void distances(size_t members)
{
	Matrix<float> norms(members, 1);
	Matrix<float> squared(members, members); // CULPRIT
	Matrix<int> nearest(members, 16);
}

int main()
{
	std::vector<size_t> clusters(90);
	std::iota(clusters.begin(), clusters.end(), 900);
	clusters[71] = 52000;
	Matrix<float> points(3000000, 64);
	for (size_t members : clusters)
		distances(members); // CULPRIT
	return 0;
}
