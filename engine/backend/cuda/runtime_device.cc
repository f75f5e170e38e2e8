// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/runtime_device.h"

#include <string>
#include <utility>

namespace hallmark {
namespace {

constexpr int kLeastMajor = 8;
constexpr char kFlag[] = "--device";

std::string Describe(cudaError_t error) {
  return std::string(cudaGetErrorName(error)) + ": " + cudaGetErrorString(error);
}

tl::unexpected<Error> DeviceError(cudaError_t error, const std::string& what, Locator where = {}) {
  return Fail(Code::kDevice,
              what + " failed, " + Describe(error) +
                  "; the device takes no further work from this process, and the system's log may "
                  "say why (a fault, an unplugged or reset device)",
              std::move(where));
}

class RuntimeDevice : public CudaDevice {
 public:
  explicit RuntimeDevice(CudaDeviceFacts facts) : facts_(std::move(facts)) {}

  const CudaDeviceFacts& facts() const override { return facts_; }

  Result<uint64_t> FreeBytes() override {
    size_t free = 0;
    size_t total = 0;
    const cudaError_t error = cudaMemGetInfo(&free, &total);
    if (error != cudaSuccess) return DeviceError(error, "asking for free memory");
    return uint64_t{free};
  }

  Result<void*> Allocate(size_t bytes) override {
    void* memory = nullptr;
    const cudaError_t error = cudaMalloc(&memory, bytes);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // not a fault of the device: the next call starts clean
      return Fail(Code::kResource, "no device memory for " + std::to_string(bytes) + " bytes" +
                                       Room() +
                                       "; fewer streams, a smaller context, fp8 keys and values or "
                                       "a host-mapped embedding need less");
    }
    if (error != cudaSuccess) return DeviceError(error, "allocating device memory");
    return memory;
  }

  Result<MappedMemory> AllocateMapped(size_t bytes) override {
    void* host = nullptr;
    cudaError_t error = cudaHostAlloc(&host, bytes, cudaHostAllocMapped | cudaHostAllocPortable);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      return Fail(Code::kResource,
                  "no page-locked host memory for " + std::to_string(bytes) +
                      " bytes; the system may limit it (ulimit -l) or have too little left");
    }
    if (error != cudaSuccess) return DeviceError(error, "allocating page-locked host memory");
    void* device = nullptr;
    error = cudaHostGetDevicePointer(&device, host, 0);
    if (error != cudaSuccess) {
      cudaFreeHost(host);
      return DeviceError(error, "mapping host memory");
    }
    return MappedMemory{static_cast<std::byte*>(host), static_cast<std::byte*>(device)};
  }

  void Free(void* memory) override { cudaFree(memory); }
  void FreeMapped(const MappedMemory& memory) override { cudaFreeHost(memory.host); }

  Result<cudaStream_t> CreateStream() override {
    cudaStream_t stream = nullptr;
    const cudaError_t error = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (error != cudaSuccess) return DeviceError(error, "making a stream");
    return stream;
  }
  void DestroyStream(cudaStream_t stream) override { cudaStreamDestroy(stream); }
  Status Synchronize(cudaStream_t stream) override {
    return Check(cudaStreamSynchronize(stream), "waiting for the device");
  }

  Status Memset(void* memory, int byte, size_t bytes, cudaStream_t stream) override {
    return Check(cudaMemsetAsync(memory, byte, bytes, stream), "filling device memory");
  }
  Status CopyToDevice(void* to, const void* host, size_t bytes, cudaStream_t stream) override {
    return Check(cudaMemcpyAsync(to, host, bytes, cudaMemcpyHostToDevice, stream),
                 "copying to the device");
  }
  Status CopyToHost(void* host, const void* from, size_t bytes, cudaStream_t stream) override {
    return Check(cudaMemcpyAsync(host, from, bytes, cudaMemcpyDeviceToHost, stream),
                 "copying from the device");
  }
  Status CopyOnDevice(void* to, const void* from, size_t bytes, cudaStream_t stream) override {
    return Check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream),
                 "copying on the device");
  }

  Status Launch(const char* name, cudaStream_t stream, const Launcher& launcher) override {
    const cudaError_t error = launcher(stream);
    if (error == cudaSuccess) return {};
    if (error == cudaErrorNoKernelImageForDevice || error == cudaErrorInvalidDeviceFunction) {
      return Fail(Code::kUnsupported,
                  "this build has no code for " + facts_.name + " (sm_" +
                      std::to_string(facts_.major) + std::to_string(facts_.minor) +
                      "), expected one of " HALLMARK_CUDA_ARCHITECTURES
                      "; build with -DCMAKE_CUDA_ARCHITECTURES for this device",
                  {.launcher = name, .flag = kFlag});
    }
    if (error == cudaErrorMemoryAllocation) {
      return Fail(Code::kResource,
                  "no device memory to load the kernel" + Room() +
                      "; fewer streams or a smaller context need less",
                  {.launcher = name});
    }
    return DeviceError(error, "a launch", {.launcher = name});
  }

  Status BeginCapture(cudaStream_t stream) override {
    return Check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
                 "beginning a capture");
  }
  Result<cudaGraphExec_t> EndCapture(cudaStream_t stream) override {
    cudaGraph_t graph = nullptr;
    cudaError_t error = cudaStreamEndCapture(stream, &graph);
    if (error >= cudaErrorStreamCaptureUnsupported && error <= cudaErrorStreamCaptureWrongThread) {
      cudaGetLastError();  // the capture is void, the device is well
      return Fail(Code::kInternal, "a capture ended with " + Describe(error));
    }
    if (error != cudaSuccess) return DeviceError(error, "ending a capture");
    cudaGraphExec_t ready = nullptr;
    error = cudaGraphInstantiate(&ready, graph, 0);
    cudaGraphDestroy(graph);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      return Fail(Code::kResource, "no device memory for a graph" + Room());
    }
    if (error != cudaSuccess) return DeviceError(error, "making a graph");
    return ready;
  }
  void AbandonCapture(cudaStream_t stream) override {
    cudaGraph_t graph = nullptr;
    if (cudaStreamEndCapture(stream, &graph) == cudaSuccess) cudaGraphDestroy(graph);
    cudaGetLastError();
  }
  Status LaunchGraph(cudaGraphExec_t graph, cudaStream_t stream) override {
    return Check(cudaGraphLaunch(graph, stream), "replaying a graph");
  }
  void DestroyGraph(cudaGraphExec_t graph) override { cudaGraphExecDestroy(graph); }

 private:
  static Status Check(cudaError_t error, const char* what) {
    if (error == cudaSuccess) return {};
    return DeviceError(error, what);
  }

  std::string Room() {
    const auto free = FreeBytes();
    if (!free.has_value()) return "";
    return ", " + std::to_string(*free) + " of " + std::to_string(facts_.total_bytes) +
           " bytes are free on " + facts_.name;
  }

  CudaDeviceFacts facts_;
};

tl::unexpected<Error> Unsupported(std::string message) {
  return Fail(Code::kUnsupported, std::move(message), {.flag = kFlag});
}

}  // namespace

std::string CudaVersionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

Result<std::unique_ptr<CudaDevice>> OpenRuntimeDevice() {
  CudaDeviceFacts facts;
  cudaError_t error = cudaDriverGetVersion(&facts.driver_version);
  if (error != cudaSuccess || facts.driver_version == 0) {
    return Unsupported("found no NVIDIA driver, expected one that serves CUDA " +
                       CudaVersionText(CUDART_VERSION) + "; install it, or use --device cpu");
  }
  error = cudaRuntimeGetVersion(&facts.runtime_version);
  if (error != cudaSuccess) return DeviceError(error, "asking for the runtime's version");
  int count = 0;
  error = cudaGetDeviceCount(&count);
  if (error == cudaErrorInsufficientDriver) {
    return Unsupported("the NVIDIA driver serves CUDA " + CudaVersionText(facts.driver_version) +
                       ", expected " + CudaVersionText(facts.runtime_version) +
                       " or newer; update the driver");
  }
  if (error == cudaErrorNoDevice || (error == cudaSuccess && count == 0)) {
    return Unsupported(
        "found no CUDA device, expected one that CUDA_VISIBLE_DEVICES shows and this user may "
        "open; use --device cpu without one");
  }
  if (error != cudaSuccess) return DeviceError(error, "counting devices");
  cudaDeviceProp properties{};
  error = cudaGetDeviceProperties(&properties, 0);
  if (error != cudaSuccess) return DeviceError(error, "asking for the device's properties");
  facts.name = properties.name;
  facts.major = properties.major;
  facts.minor = properties.minor;
  facts.total_bytes = properties.totalGlobalMem;
  facts.integrated = properties.integrated != 0;
  if (facts.major < kLeastMajor) {
    return Unsupported(facts.name + " has compute capability " + std::to_string(facts.major) + "." +
                       std::to_string(facts.minor) +
                       ", expected 8.0 or higher; choose another with CUDA_VISIBLE_DEVICES");
  }
  error = cudaSetDevice(0);
  if (error == cudaErrorMemoryAllocation) {
    return Fail(Code::kResource,
                "no memory on " + facts.name +
                    " for a context; another process holds it, or CUDA_VISIBLE_DEVICES can show "
                    "another device",
                {.flag = kFlag});
  }
  if (error == cudaErrorDevicesUnavailable) {
    return Unsupported(facts.name +
                       " is in exclusive use by another process, expected a free device; wait, or "
                       "choose another with CUDA_VISIBLE_DEVICES");
  }
  if (error != cudaSuccess) return DeviceError(error, "opening " + facts.name);
  return std::unique_ptr<CudaDevice>(std::make_unique<RuntimeDevice>(std::move(facts)));
}

}  // namespace hallmark
