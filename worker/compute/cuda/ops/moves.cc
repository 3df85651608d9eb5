#include "worker/compute/cuda/ops/moves.h"

#include "worker/compute/cuda/kernels/add_part.h"
#include "worker/compute/cuda/kernels/strided.h"
#include "worker/compute/cuda/program/kernel_step.h"

namespace shoal::cuda {
namespace {

template <typename Make>
std::unique_ptr<Kernel> StepOfNoOp(const char* what, const Stream* stream, Make make) {
  return std::make_unique<KernelStep<Make>>(NodeName{.op = what}, stream, std::move(make));
}

// Sizes are multiples of floats, as everywhere in a program.
class CudaMoves : public DeviceMoveKernels {
 public:
  explicit CudaMoves(const Stream* stream) : stream_(stream) {}

  std::unique_ptr<Kernel> Copy(int64_t size_bytes) const override {
    StridedAxes axes;
    const int64_t count = size_bytes / static_cast<int64_t>(sizeof(float));
    axes.AddOuter(count, 1);
    std::unique_ptr<Kernel> step;
    WithWidth<float>(count, [&]<int width>(std::integral_constant<int, width>) {
      step = StepOfNoOp(
          "Copy", stream_, [packed = PackedAxes<width>(axes), count](const StepTensors& at) {
            return StridedCopyKernel<float, width>{at[0], packed, at[1], packed, count};
          });
    });
    return step;
  }
  std::unique_ptr<Kernel> Zero(int64_t size_bytes) const override {
    const int64_t count = size_bytes / static_cast<int64_t>(sizeof(float));
    std::unique_ptr<Kernel> step;
    WithWidth<float>(count, [&]<int width>(std::integral_constant<int, width>) {
      step = StepOfNoOp("Zero", stream_, [=](const StepTensors& at) {
        return FillKernel<float, width>{0, at[0], count};
      });
    });
    return step;
  }
  std::unique_ptr<Kernel> AddPart(int64_t size_bytes) const override {
    const int64_t count = size_bytes / static_cast<int64_t>(sizeof(float));
    std::unique_ptr<Kernel> step;
    WithWidth<float>(count, [&]<int width>(std::integral_constant<int, width>) {
      step = StepOfNoOp("AddPart", stream_, [=](const StepTensors& at) {
        return AddPartKernel<width>{at.context(), at[0], count, at[1]};
      });
    });
    return step;
  }
  std::unique_ptr<Kernel> FloatsOfBytes(int64_t count) const override {
    std::unique_ptr<Kernel> step;
    WithWidth<float>(count, [&]<int width>(std::integral_constant<int, width>) {
      step = StepOfNoOp("FloatsOfBytes", stream_, [=](const StepTensors& at) {
        return FloatsOfBytesKernel<width>{at.At<uint8_t>(0), at[1], count};
      });
    });
    return step;
  }

 private:
  const Stream* const stream_;
};

}  // namespace

std::unique_ptr<DeviceMoveKernels> CreateMoves(const Stream* stream) {
  return std::make_unique<CudaMoves>(stream);
}

}  // namespace shoal::cuda
