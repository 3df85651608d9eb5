// Convolutions as they are asked of cuDNN, against the reference: computed on the CPU as the graph
// says, and in the cuda preset by cuDNN where there is a GPU.

#include "worker/compute/cuda/cudnn/convolutions.h"

#include "common/model/ops/conv2d.h"
#include "tests/worker/compute/cuda/cudnn/convolutions_on_cpu.h"
#include "tests/worker/compute/cuda/kernels/kernel_test.h"
#include "worker/compute/cuda/kernels/transpose.h"

#ifdef __CUDACC__
#include "worker/compute/cuda/cudnn/cudnn_convolutions.h"
#endif

namespace shoal::cuda {
namespace {

using Pass = ConvolutionGraph::Pass;

template <typename Element>
constexpr ComputeDtype kType = ComputeDtype::kFloat32;
template <>
constexpr ComputeDtype kType<BFloat16> = ComputeDtype::kBfloat16;
template <>
constexpr ComputeDtype kType<Float16> = ComputeDtype::kFloat16;

// A convolution with everything drawn.
struct Drawn {
  Window window;
  int64_t groups = 1;
  ConvolutionShapes shapes;
};

class ConvolutionsTest : public KernelTest {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped()) return;
#ifdef __CUDACC__
    if (on_device()) {
      auto stream = Stream::Create();
      ASSERT_TRUE(stream.ok()) << stream.status();
      stream_.emplace(*std::move(stream));
      convolutions_ = CreateCudnnConvolutions({.stream = &*stream_});
      return;
    }
#endif
    convolutions_ = std::make_unique<ConvolutionsOnCpu>();
  }

  Drawn Draw() {
    Drawn drawn = {.groups = Flip() ? 1 : Pick(2, 3)};
    Window& window = drawn.window;
    window = {.size = {Pick(1, 4), Pick(1, 4)}, .strides = {Pick(1, 3), Pick(1, 3)}};
    if (Flip()) window.dilation = {Pick(1, 3), Pick(1, 3)}, window.strides = {1, 1};
    if (Flip()) {
      window.padding = Padding::kSame;
    } else {
      window.zeros_before = {Pick(0, 2), Pick(0, 2)};
      window.zeros_after = {Pick(0, 2), Pick(0, 2)};
    }
    const int64_t channels = Pick(1, 9), filters = drawn.groups * Pick(1, 9);
    const Shape x = {Pick(1, 3), Pick(10, 14), Pick(10, 14), drawn.groups * channels};
    Shape y = window.OutputShape(x).value();
    y[3] = filters;
    drawn.shapes = {.x = x, .kernel = {window.size[0], window.size[1], channels, filters}, .y = y};
    return drawn;
  }

  // Runs the pass to its end.
  void Compute(const ConvolutionGraph& graph, std::vector<void*> tensors) {
    auto made = convolutions_->Make(graph, /*trains=*/true, {.op = "Conv2D", .layer = "drawn"});
    ASSERT_TRUE(made.ok()) << made.status();
    const Buffer<char> workspace = Empty<char>(made->workspace_bytes);
    tensors.push_back(workspace.data());
    const absl::Status ran = made->kernel->Run(nullptr, tensors);
    ASSERT_TRUE(ran.ok()) << ran;
#ifdef __CUDACC__
    if (on_device()) {
      const absl::Status done = stream_->Synchronize();
      ASSERT_TRUE(done.ok()) << done;
    }
#endif
  }

  // Of a kernel as Keras has it, as cuDNN has it, and back.
  template <typename To, typename From>
  Buffer<To> Transposed(const Buffer<From>& from, int64_t rows) {
    Buffer<To> to = Empty<To>(from.size());
    Run(TransposeKernel<From, To>{rows, from.size() / rows, from.data(), to.data()});
    return to;
  }

  std::unique_ptr<Convolutions> convolutions_;
#ifdef __CUDACC__
  std::optional<Stream> stream_;
#endif
};

// In units of the largest: with other orders of summation, and Winograd's.
constexpr double kBound = 1e-4;

TEST_P(ConvolutionsTest, Forward) {
  ForElements(8, [&]<typename Element>(Element) {
    if (!on_device() && sizeof(Element) == 2) return;  // what computes there has floats alone
    const Drawn drawn = Draw();
    const auto& [x_shape, kernel_shape, y_shape] = drawn.shapes;
    const auto ending = static_cast<ConvolutionEpilogue>(Pick(0, 2));
    const ConvolutionGraph graph =
        DescribeConvolution(Pass::kForward, drawn.window, drawn.shapes, kType<Element>, ending);
    SCOPED_TRACE(GraphText(graph));
    const auto x = Normal<Element>(ElementCount(x_shape));
    const auto kernel = Normal<Element>(ElementCount(kernel_shape));
    const auto bias = Normal<Element>(kernel_shape[3]);
    const auto y = Empty<Element>(ElementCount(y_shape));
    const auto filter = Transposed<Element>(kernel, kernel.size() / kernel_shape[3]);

    Conv2DOp op;
    op.window = drawn.window;
    op.groups = drawn.groups;
    std::vector<Operand> inputs = {{x.doubles(), x_shape}, {kernel.doubles(), kernel_shape}};
    std::vector<void*> tensors = {x.data(), filter.data()};
    if (ending != ConvolutionEpilogue::kNone) {
      inputs.push_back({bias.doubles(), {kernel_shape[3]}});
      tensors.push_back(bias.data());
    }
    tensors.push_back(y.data());
    Compute(graph, tensors);
    Doubles expected = Reference(op, inputs)[0];
    if (ending == ConvolutionEpilogue::kBiasAndRelu) {
      for (double& value : expected) value = std::max(value, 0.0);
    }
    ExpectNear(y, expected, kBound, "y");
  });
}

TEST_P(ConvolutionsTest, BackwardData) {
  ForElements(8, [&]<typename Element>(Element) {
    if (!on_device() && sizeof(Element) == 2) return;
    const Drawn drawn = Draw();
    const auto& [x_shape, kernel_shape, y_shape] = drawn.shapes;
    const ConvolutionGraph graph =
        DescribeConvolution(Pass::kBackwardData, drawn.window, drawn.shapes, kType<Element>);
    SCOPED_TRACE(GraphText(graph));
    const auto dy = Normal<Element>(ElementCount(y_shape));
    const auto kernel = Normal<Element>(ElementCount(kernel_shape));
    const auto dx = Empty<Element>(ElementCount(x_shape));
    const auto filter = Transposed<Element>(kernel, kernel.size() / kernel_shape[3]);
    Conv2DBackwardDataOp op;
    op.window = drawn.window;
    op.groups = drawn.groups;
    op.x_shape = x_shape;
    Compute(graph, {dx.data(), filter.data(), dy.data()});
    ExpectNear(dx, Reference(op, {{dy.doubles(), y_shape}, {kernel.doubles(), kernel_shape}})[0],
               kBound, "dx");
  });
}

TEST_P(ConvolutionsTest, BackwardFilter) {
  ForElements(8, [&]<typename Element>(Element) {
    if (!on_device() && sizeof(Element) == 2) return;
    const Drawn drawn = Draw();
    const auto& [x_shape, kernel_shape, y_shape] = drawn.shapes;
    const ConvolutionGraph graph =
        DescribeConvolution(Pass::kBackwardFilter, drawn.window, drawn.shapes, kType<Element>);
    SCOPED_TRACE(GraphText(graph));
    const auto x = Normal<Element>(ElementCount(x_shape));
    const auto dy = Normal<Element>(ElementCount(y_shape));
    const auto dfilter = Empty<Element>(ElementCount(kernel_shape));
    Conv2DBackwardWeightsOp op;
    op.window = drawn.window;
    op.groups = drawn.groups;
    op.kernel_shape = kernel_shape;
    Compute(graph, {x.data(), dfilter.data(), dy.data()});
    const auto dkernel = Transposed<Element>(dfilter, kernel_shape[3]);
    ExpectNear(dkernel, Reference(op, {{x.doubles(), x_shape}, {dy.doubles(), y_shape}})[0], kBound,
               "dkernel");
  });
}

// A model that diverges is to show it.
TEST_P(ConvolutionsTest, AReluKeepsWhatIsNotANumber) {
  const ConvolutionShapes shapes = {.x = {1, 2, 2, 8}, .kernel = {1, 1, 8, 8}, .y = {1, 2, 2, 8}};
  ForElements(1, [&]<typename Element>(Element) {
    if (!on_device() && sizeof(Element) == 2) return;
    const ConvolutionGraph graph = DescribeConvolution(Pass::kForward, {}, shapes, kType<Element>,
                                                       ConvolutionEpilogue::kBiasAndRelu);
    const auto x = Normal<Element>(32), filter = Normal<Element>(64), bias = Zeros<Element>(8);
    const auto y = Empty<Element>(32);
    x[0] = FromFloat<Element>(NAN);
    Compute(graph, {x.data(), filter.data(), bias.data(), y.data()});
    for (int i = 0; i < 32; ++i) EXPECT_EQ(std::isnan(ToFloat(y[i])), i < 8) << i;
  });
}

TEST_P(ConvolutionsTest, Transposes) {
  for (const auto& [rows, columns] : {std::pair{1, 1}, {3, 70}, {64, 32}, {33, 31}, {100, 5}}) {
    const auto from = Normal<float>(int64_t{rows} * columns);
    const auto to = Transposed<BFloat16>(from, rows);
    const auto back = Transposed<float>(to, columns);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        const int64_t at = row * columns + column;
        const float rounded = ToFloat(FromFloat<BFloat16>(from[at]));
        ASSERT_EQ(ToFloat(to[column * rows + row]), rounded);
        ASSERT_EQ(back[at], rounded);
      }
    }
  }
}

SHOAL_KERNEL_TEST_SUITE(ConvolutionsTest);

}  // namespace
}  // namespace shoal::cuda
