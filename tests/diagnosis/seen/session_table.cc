// SPDX-License-Identifier: MIT
// A server of sessions. They are opened under the name a client gives and closed under its lower case, so a client that shouts is never closed.
#include <cctype>
#include <map>
#include <memory>
#include <string>
#include <vector>

extern "C" {
#include "../../apps/gpu.h"
}

template <typename T> class DeviceArray {
      public:
	explicit DeviceArray(size_t count) : count_(count)
	{
		if (cudaMalloc((void **)&data_, count * sizeof(T)))
			throw std::bad_alloc();
	}
	~DeviceArray() { cudaFree(data_); }
	DeviceArray(const DeviceArray &) = delete;

      private:
	T *data_ = nullptr;
	size_t count_;
};

struct Session {
	DeviceArray<float> keys{16384}, values{16384};
};

class Server {
      public:
	void open(const std::string &name)
	{
		sessions_[name] = std::make_unique<Session>(); /* CULPRIT */
	}
	void close(const std::string &name)
	{
		std::string key;

		for (char c : name)
			key += (char)std::tolower(c);
		sessions_.erase(key);
	}
	void answer()
	{
		DeviceArray<double> logits(50000);
	}

      private:
	std::map<std::string, std::unique_ptr<Session>> sessions_;
};

int main()
{
	Server server;

	for (int i = 0; i < 600; i++) {
		std::string name = (i % 3 ? "client" : "CLIENT") + std::to_string(i);

		server.open(name);
		server.answer();
		server.close(name);
	}
	return 0;
}
