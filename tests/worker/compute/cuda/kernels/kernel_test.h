#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <ostream>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "common/model/op.h"
#include "tests/fakes/test_seed.h"
#include "worker/compute/cuda/kernels/run_on_cpu.h"
#include "worker/compute/op_math/float16.h"
#include "worker/compute/reference/kernels.h"

#ifdef __CUDACC__
#include "worker/compute/cuda/program/launch.h"
#include "worker/compute/cuda/runtime/device_survey.h"
#endif

// The common part of kernel tests. They run whole grids on the CPU and, in the cuda preset, on a
// GPU if there is one. They use random values and shapes and compare with the reference.

namespace shoal::cuda {

using Doubles = std::vector<double>;

// Memory that kernels can access on the CPU and on the GPU. Its first values are not-a-number.
template <typename Element>
class Buffer {
 public:
  Buffer(int64_t size, bool on_device) : size_(size), on_device_(on_device) {
    const size_t size_bytes = std::max<size_t>(1, size) * sizeof(Element);
#ifdef __CUDACC__
    if (on_device) {
      void* data = nullptr;
      EXPECT_TRUE(SHOAL_CUDA(cudaMallocManaged(&data, size_bytes)).ok());
      data_ = static_cast<Element*>(data);
    }
#endif
    if (!on_device) data_ = static_cast<Element*>(::operator new(size_bytes, std::align_val_t(16)));
    std::memset(static_cast<void*>(data_), 0xff, size_bytes);
  }
  Buffer(const Buffer&) = delete;
  Buffer(Buffer&& other)
      : data_(std::exchange(other.data_, nullptr)),
        size_(other.size_),
        on_device_(other.on_device_) {}
  ~Buffer() {
#ifdef __CUDACC__
    if (on_device_) cudaFree(data_);
#endif
    if (!on_device_) ::operator delete(data_, std::align_val_t(16));
  }

  Element* data() const { return data_; }
  int64_t size() const { return size_; }
  Element& operator[](int64_t i) const { return data_[i]; }

  Doubles doubles() const {
    Doubles values;
    for (int64_t i = 0; i < size_; ++i) values.push_back(ToFloat(data_[i]));
    return values;
  }

 private:
  Element* data_ = nullptr;
  int64_t size_;
  bool on_device_;
};

struct Operand {
  Doubles values;
  Shape shape;
};

// Returns the reference's result of `op` in training.
inline std::vector<Doubles> Reference(const Op& op, const std::vector<Operand>& inputs) {
  std::vector<Shape> shapes;
  for (const Operand& input : inputs) shapes.push_back(input.shape);
  const auto outputs = op.InferShapes(shapes);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  std::vector<Doubles> results;
  for (const Shape& shape : *outputs) results.emplace_back(ElementCount(shape));
  reference::Arguments arguments = {.op = op, .training = true};
  for (const Operand& input : inputs) {
    EXPECT_EQ(static_cast<int64_t>(input.values.size()), ElementCount(input.shape));
    arguments.inputs.push_back({input.values.data(), input.shape});
  }
  for (size_t i = 0; i < results.size(); ++i) {
    arguments.outputs.push_back({results[i].data(), (*outputs)[i]});
  }
  reference::Kernels().at(op.type())(arguments);
  return results;
}

enum class RunsOn { kCpu, kDevice };
inline std::string Name(RunsOn runs_on) { return runs_on == RunsOn::kCpu ? "OnCpu" : "OnDevice"; }
inline void PrintTo(RunsOn runs_on, std::ostream* out) { *out << Name(runs_on); }

class KernelTest : public ::testing::TestWithParam<RunsOn> {
 protected:
  void SetUp() override {
#ifdef __CUDACC__
    if (!on_device()) return;
    const absl::Status device = FindDevice(SurveyDevices(), 0).status();
    if (!device.ok()) GTEST_SKIP() << "No GPU here: " << device.message();
#endif
  }

  static bool on_device() { return GetParam() == RunsOn::kDevice; }

  // Runs the kernel and waits for its end.
  template <typename Kernel>
  void Run(const Kernel& kernel) {
    if (!on_device()) return RunOnCpu(kernel, random_);
#ifdef __CUDACC__
    auto stream = Stream::Create();
    ASSERT_TRUE(stream.ok()) << stream.status();
    const absl::Status launched = Launch(kernel, *stream);
    ASSERT_TRUE(launched.ok()) << launched;
    const absl::Status done = stream->Synchronize();
    ASSERT_TRUE(done.ok()) << done;
#endif
  }

  // Calls draw(element) `draws` times for each element type; `element` is a zero of that type.
  template <typename Draw>
  void ForElements(int draws, const Draw& draw) {
    for (int i = 0; i < draws && !HasFatalFailure(); ++i) {
      {
        SCOPED_TRACE("float");
        draw(float{});
      }
      {
        SCOPED_TRACE("bfloat16");
        draw(BFloat16{});
      }
      SCOPED_TRACE("float16");
      draw(Float16{});
    }
  }

  int64_t Pick(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random_);
  }
  bool Flip() { return random_() % 2 == 0; }

  template <typename Element>
  Buffer<Element> Empty(int64_t size) {
    return Buffer<Element>(size, on_device());
  }
  template <typename Element>
  Buffer<Element> Zeros(int64_t size) {
    Buffer<Element> buffer = Empty<Element>(size);
    std::memset(static_cast<void*>(buffer.data()), 0, size * sizeof(Element));
    return buffer;
  }
  template <typename Element>
  Buffer<Element> Normal(int64_t size, float mean = 0, float deviation = 1) {
    Buffer<Element> buffer = Empty<Element>(size);
    std::normal_distribution<float> normal(mean, deviation);
    for (int64_t i = 0; i < size; ++i) buffer[i] = FromFloat<Element>(normal(random_));
    return buffer;
  }
  // Where a kernel reads its input and writes its output: one place, or two.
  template <typename Element>
  struct Places {
    Buffer<Element> to;
    const Element* from;
  };
  // Draws the places for a kernel that may work in place on the content of `input`. Leaves `input`
  // unchanged.
  template <typename Element>
  Places<Element> DrawPlaces(const Buffer<Element>& input) {
    Places<Element> places = {Empty<Element>(input.size()), input.data()};
    if (Flip()) {
      std::copy(input.data(), input.data() + input.size(), places.to.data());
      places.from = places.to.data();
    }
    return places;
  }
  // Draws class numbers from 0 to classes - 1.
  Buffer<float> Classes(int64_t size, int64_t classes) {
    Buffer<float> buffer = Empty<float>(size);
    for (int64_t i = 0; i < size; ++i) buffer[i] = static_cast<float>(Pick(0, classes - 1));
    return buffer;
  }

  // Expects every element within `bound` of the largest. Types with less than 24 bits may also be
  // off by half a unit in the last place, and float16 at least by half the distance of its smallest
  // numbers. Values beyond the range of float16 may be infinite.
  template <typename Element>
  void ExpectNear(const Buffer<Element>& actual, const Doubles& expected, double bound,
                  const std::string& what, double least = 1e-6) {
    ASSERT_EQ(actual.size(), static_cast<int64_t>(expected.size())) << what;
    double largest = least;
    for (const double value : expected) largest = std::max(largest, std::abs(value));
    for (int64_t i = 0; i < actual.size(); ++i) {
      const float value = ToFloat(actual[i]);
      if (std::is_same_v<Element, Float16> && std::isinf(value)) {
        constexpr double kRoundsToInfinity = 65520;
        ASSERT_GE(std::copysign(1.0, value) * expected[i], kRoundsToInfinity - bound * largest)
            << what << "[" << i << "]";
        continue;
      }
      double rounding = 0;
      if (std::is_same_v<Element, BFloat16>) rounding = std::abs(expected[i]) * 0x1p-8;
      if (std::is_same_v<Element, Float16>)
        rounding = std::max(std::abs(expected[i]) * 0x1p-11, 0x1p-25);
      ASSERT_NEAR(value, expected[i], bound * largest + rounding) << what << "[" << i << "]";
    }
  }

  const uint64_t seed_ = TestSeed();
  std::mt19937_64 random_{seed_};
  const testing::ScopedTrace trace_{__FILE__, __LINE__, SeedText(seed_)};
};

#ifdef __CUDACC__
#define SHOAL_KERNELS_RUN_ON ::testing::Values(RunsOn::kCpu, RunsOn::kDevice)
#else
#define SHOAL_KERNELS_RUN_ON ::testing::Values(RunsOn::kCpu)
#endif
#define SHOAL_KERNEL_TEST_SUITE(SUITE)                    \
  INSTANTIATE_TEST_SUITE_P(, SUITE, SHOAL_KERNELS_RUN_ON, \
                           [](const auto& info) { return Name(info.param); })

}  // namespace shoal::cuda
