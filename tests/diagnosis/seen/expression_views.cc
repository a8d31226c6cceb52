// SPDX-License-Identifier: MIT
// Expression templates: detach() of a view makes a copy that its owner was to adopt, and the const overload adopts nothing.
#include <cstddef>
#include <type_traits>
#include <utility>

extern "C" {
#include "../../apps/gpu.h"
}

template <typename T> struct device_traits {
	static T *make(size_t count)
	{
		void *p;
		OK(cudaMalloc(&p, count * sizeof(T)));
		return static_cast<T *>(p);
	}
	static void drop(T *p) { OK(cudaFree(p)); }
};

template <typename T, typename Traits = device_traits<T>> class Matrix {
	T *data;
	size_t count;
	bool owns;

public:
	explicit Matrix(size_t n) : data(Traits::make(n)), count(n), owns(true) {}
	Matrix(T *p, size_t n, bool own) : data(p), count(n), owns(own) {}
	Matrix(Matrix &&other) : data(other.data), count(other.count), owns(std::exchange(other.owns, false)) {}
	~Matrix()
	{
		if (owns)
			Traits::drop(data);
	}
	Matrix view() const { return Matrix(data, count, false); }
	Matrix detach() const { return Matrix(Traits::make(count), count, owns); } /* CULPRIT */
	size_t size() const { return count; }
};

template <typename L, typename R> struct Sum {
	const L &left;
	const R &right;
	Matrix<float> eval() const { return Matrix<float>(left.size()); }
};
template <typename L, typename R> static Sum<L, R> operator+(const L &left, const R &right)
{
	return {left, right};
}

template <typename M> static void smooth(const M &field)
{
	auto window = field.view();
	auto copy = window.detach(); /* CULPRIT */
	auto sum = (copy + field).eval();
}

int main()
{
	Matrix<float> pressure(70000), velocity(500000);

	for (int step = 0; step < 260; step++) {
		Matrix<double> residual(20000);
		smooth(pressure);
	}
	return 0;
}
