#include "common/model/ops/batch_normalization.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "worker/compute/cpu/activation.h"
#include "worker/compute/cpu/channel_rows.h"
#include "worker/compute/cpu/element.h"
#include "worker/compute/cpu/loop_kernel.h"
#include "worker/compute/plan/fused_ops.h"

// Forward computes the moments of each unit, then mean and variance, then y. Backward computes
// sums, then the table of each channel, then dx. A fused ReLU needs no pass of its own. Forward
// applies it to y in registers. Backward recomputes from x where it cut off.

namespace shoal::cpu {
namespace {

// By lane: y = (x - mean) * factor + beta, limited to [least, most]. A bound of not-a-number bounds
// nothing. A value of not-a-number is kept.
template <typename Element>
struct Normalized {
  const Element* x;
  const float* mean;
  const float* factor;
  const float* beta;
  float least;
  float most;

  SHOAL_INLINE float Get(int64_t place, int64_t lane) const {
    const float y = (ToFloat(x[place]) - mean[lane]) * factor[lane] + beta[lane];
    const float raised = least > y ? least : y;
    return most < raised ? most : raised;
  }
};

SHOAL_VECTORIZED void NormalizeRows(const Normalized<float>& normalized, int64_t rows,
                                    int64_t lanes, float* y) {
  MapRows(normalized, rows, lanes, y);
}
SHOAL_VECTORIZED void NormalizeRows(const Normalized<BFloat16>& normalized, int64_t rows,
                                    int64_t lanes, BFloat16* y) {
  MapRows(normalized, rows, lanes, y);
}

// The mean of each lane, and the sum of squared distances from it: moments[lane] and moments[lanes
// + lane]. It takes some rows at a time and reads them a second time, from the cache, around their
// own mean. Then it merges the parts (Chan, Golub, LeVeque 1979). This is exact for any range of
// values.
template <typename Element>
struct MomentsTile {
  const Element* x;
  int64_t rows;
  int64_t lanes;
  float* moments;

  template <int kLanes>
  SHOAL_INLINE void Run(int64_t lane) const {
    const Element* const from = x + lane;
    float mean[kLanes] = {}, squares[kLanes] = {};
    for (int64_t begin = 0; begin < rows; begin += kRowsAtATime) {
      const int64_t end = std::min(rows, begin + kRowsAtATime);
      const float count = static_cast<float>(end - begin);
      float near[kLanes] = {}, rest[kLanes] = {}, part[kLanes] = {};
      for (int64_t row = begin; row < end; ++row) {
#pragma omp simd
        for (int i = 0; i < kLanes; ++i) near[i] += ToFloat(from[row * lanes + i]);
      }
      for (int i = 0; i < kLanes; ++i) near[i] /= count;
      for (int64_t row = begin; row < end; ++row) {
#pragma omp simd
        for (int i = 0; i < kLanes; ++i) {
          const float distance = ToFloat(from[row * lanes + i]) - near[i];
          rest[i] += distance;
          part[i] += distance * distance;
        }
      }
      const float share = count / static_cast<float>(end);
      for (int i = 0; i < kLanes; ++i) {
        const float between = near[i] + rest[i] / count - mean[i];
        mean[i] += between * share;
        squares[i] += part[i] - rest[i] * rest[i] / count +
                      between * between * (share * static_cast<float>(begin));
      }
    }
    std::copy_n(mean, kLanes, moments + lane);
    std::copy_n(squares, kLanes, moments + lanes + lane);
  }
};

SHOAL_VECTORIZED void UnitMoments(const float* x, int64_t rows, int64_t lanes, float* moments) {
  ForEachTile(lanes, MomentsTile<float>{x, rows, lanes, moments});
}
SHOAL_VECTORIZED void UnitMoments(const BFloat16* x, int64_t rows, int64_t lanes, float* moments) {
  ForEachTile(lanes, MomentsTile<BFloat16>{x, rows, lanes, moments});
}

// By lane, with d = x - mean and g the gradient dy, or 0 where a ReLU cut y off.
template <typename Element>
struct GradientInputs {
  const Element* x;
  const Element* dy;
  const float* mean;
  const float* factor;
  const float* beta;
  float most;
  // dx = g * factor + d * slope + offset
  const float* slope;
  const float* offset;
};
template <bool relu, typename Element>
struct Gradients : GradientInputs<Element> {
  using Inputs = GradientInputs<Element>;
  using Inputs::beta, Inputs::dy, Inputs::factor, Inputs::mean, Inputs::most, Inputs::offset,
      Inputs::slope, Inputs::x;

  SHOAL_INLINE float Gradient(float difference, int64_t place, int64_t lane) const {
    if (!relu) return ToFloat(dy[place]);
    const float y = difference * factor[lane] + beta[lane];
    return ToFloat(dy[place]) * (((y <= 0) | (y >= most)) ? 0.0f : 1.0f);
  }
  SHOAL_INLINE void Add(int64_t place, int64_t lane, float& sum, float& products) const {
    const float difference = ToFloat(x[place]) - mean[lane];
    const float gradient = Gradient(difference, place, lane);
    sum += gradient;
    products += gradient * difference;
  }
  SHOAL_INLINE float Get(int64_t place, int64_t lane) const {
    const float difference = ToFloat(x[place]) - mean[lane];
    return Gradient(difference, place, lane) * factor[lane] + difference * slope[lane] +
           offset[lane];
  }
};

template <typename Element>
SHOAL_INLINE void SumGradientsOf(const GradientInputs<Element>& inputs, bool relu, int64_t rows,
                                 int64_t lanes, float* sums) {
  if (relu) {
    SumRows(Gradients<true, Element>{inputs}, rows, lanes, sums);
  } else {
    SumRows(Gradients<false, Element>{inputs}, rows, lanes, sums);
  }
}
SHOAL_VECTORIZED void SumGradients(const GradientInputs<float>& inputs, bool relu, int64_t rows,
                                   int64_t lanes, float* sums) {
  SumGradientsOf(inputs, relu, rows, lanes, sums);
}
SHOAL_VECTORIZED void SumGradients(const GradientInputs<BFloat16>& inputs, bool relu, int64_t rows,
                                   int64_t lanes, float* sums) {
  SumGradientsOf(inputs, relu, rows, lanes, sums);
}

template <typename Element>
SHOAL_INLINE void MapGradientsOf(const GradientInputs<Element>& inputs, bool relu, int64_t rows,
                                 int64_t lanes, Element* dx) {
  if (relu) {
    MapRows(Gradients<true, Element>{inputs}, rows, lanes, dx);
  } else {
    MapRows(Gradients<false, Element>{inputs}, rows, lanes, dx);
  }
}
SHOAL_VECTORIZED void MapGradients(const GradientInputs<float>& inputs, bool relu, int64_t rows,
                                   int64_t lanes, float* dx) {
  MapGradientsOf(inputs, relu, rows, lanes, dx);
}
SHOAL_VECTORIZED void MapGradients(const GradientInputs<BFloat16>& inputs, bool relu, int64_t rows,
                                   int64_t lanes, BFloat16* dx) {
  MapGradientsOf(inputs, relu, rows, lanes, dx);
}

// The numbers of each channel for the loops: consecutive arrays with one float for each channel,
// including those that pad the last block.
struct ChannelTable {
  ChannelTable(float* data, const ChannelRows& rows)
      : mean(data),
        factor(mean + rows.padded_channels()),
        beta(factor + rows.padded_channels()),
        slope(beta + rows.padded_channels()),
        offset(slope + rows.padded_channels()) {}
  static int64_t SizeBytes(const ChannelRows& rows) {
    return 5 * rows.padded_channels() * static_cast<int64_t>(sizeof(float));
  }

  float *mean, *factor, *beta, *slope, *offset;
};

// The inputs of a unit, from the tensors (x, dy, table, ...).
template <typename Element>
GradientInputs<Element> InputsOf(const LoopTensors& data, const ChannelRows::Unit& unit,
                                 const ChannelRows& rows, float most) {
  const ChannelTable table(data[2], rows);
  return {.x = data.At<Element>(0) + unit.place,
          .dy = data.At<Element>(1) + unit.place,
          .mean = table.mean + unit.channel,
          .factor = table.factor + unit.channel,
          .beta = table.beta + unit.channel,
          .most = most,
          .slope = table.slope + unit.channel,
          .offset = table.offset + unit.channel};
}

// Calls visit(first, second, rows) with the two numbers of a channel in each unit that contains it.
template <typename Visit>
void ForEachUnitOf(int64_t channel, const ChannelRows& rows, const float* unit_sums, Visit visit) {
  const int64_t lane = channel % rows.lanes();
  for (int64_t i = channel / rows.lanes(); i < rows.units(); i += rows.blocks()) {
    const float* sums = unit_sums + i * 2 * rows.lanes() + lane;
    visit(double{sums[0]}, double{sums[rows.lanes()]}, rows.unit(i).rows);
  }
}

struct Moments {
  double mean = 0;
  double variance = 0;
};
Moments MomentsOf(int64_t channel, const ChannelRows& rows, const float* unit_moments) {
  double mean = 0, squares = 0;
  int64_t count = 0;
  ForEachUnitOf(channel, rows, unit_moments, [&](double unit_mean, double unit_squares, int64_t n) {
    const double between = unit_mean - mean;
    const double share = static_cast<double>(n) / static_cast<double>(count + n);
    mean += between * share;
    squares += unit_squares + between * between * share * static_cast<double>(count);
    count += n;
  });
  return {mean, squares / static_cast<double>(count)};
}

int64_t UnitSumsBytes(const ChannelRows& rows) {
  return rows.units() * 2 * rows.lanes() * static_cast<int64_t>(sizeof(float));
}

// The optional variables of a normalization.
struct Parameters {
  ValueId gamma = kNoValue;
  ValueId beta = kNoValue;
};
Parameters ParametersOf(const Node& node) {
  const auto& op = static_cast<const BatchNormalizationOp&>(*node.op);
  Parameters result;
  if (op.scale) result.gamma = node.inputs[3];
  if (op.center) result.beta = node.inputs[3 + op.scale];
  return result;
}

// The places of gamma and beta in a step's tensors; -1 if absent. AddParameters() appends them.
struct ParameterPlaces {
  int gamma = -1;
  int beta = -1;
};
ParameterPlaces AddParameters(const Parameters& parameters, std::vector<TensorId>* tensors,
                              CpuProgramBuilder& program) {
  ParameterPlaces places;
  if (parameters.gamma != kNoValue) {
    places.gamma = static_cast<int>(tensors->size());
    tensors->push_back(program.RowMajor(parameters.gamma));
  }
  if (parameters.beta != kNoValue) {
    places.beta = static_cast<int>(tensors->size());
    tensors->push_back(program.RowMajor(parameters.beta));
  }
  return places;
}

}  // namespace

absl::Status BatchNormalization(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const auto& op = static_cast<const BatchNormalizationOp&>(*node.op);
  const bool of_batch = builder.in_training_mode() && !op.frozen;
  const ComputeDtype type = program.stored_dtype(node);
  const dnnl::memory::desc layout = ChannelRows::LayoutFor(node.inputs[0], type, program);
  const ChannelRows rows(builder.shape(node.inputs[0]), layout);
  const TensorId x = ChannelRows::In(node.inputs[0], layout, program);
  const TensorId table = builder.AddTensor(ChannelTable::SizeBytes(rows));
  const TensorId sums = builder.AddTensor(UnitSumsBytes(rows));
  TensorId mean = program.RowMajor(node.inputs[1]), variance = program.RowMajor(node.inputs[2]);
  if (of_batch) {
    WithElement(type, [&]<typename Element>(Element) {
      AddLoopStep(
          rows.units(), rows.grain(), {x, sums},
          [rows](const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
              const ChannelRows::Unit unit = rows.unit(i);
              UnitMoments(data.At<Element>(0) + unit.place, unit.rows, rows.lanes(),
                          data[1] + i * 2 * rows.lanes());
            }
          },
          program);
    });
    mean = builder.Output(node.outputs[1]);
    variance = builder.Output(node.outputs[2]);
  }
  std::vector<TensorId> tensors = {x, sums, mean, variance, table};
  const ParameterPlaces places = AddParameters(ParametersOf(node), &tensors, program);
  AddLoopStep(
      rows.padded_channels(), kElementGrain, tensors,
      [rows, places, of_batch, epsilon = op.epsilon](const RunContext&, const LoopTensors& data,
                                                     int64_t begin, int64_t end) {
        const ChannelTable to(data[4], rows);
        for (int64_t c = begin; c < end; ++c) {
          to.mean[c] = to.factor[c] = to.beta[c] = 0;
          if (c >= rows.channels()) continue;
          if (of_batch) {
            const Moments moments = MomentsOf(c, rows, data[1]);
            data[2][c] = static_cast<float>(moments.mean);
            data[3][c] = static_cast<float>(moments.variance);
          }
          to.mean[c] = data[2][c];
          to.factor[c] = static_cast<float>((places.gamma < 0 ? 1 : data[places.gamma][c]) /
                                            std::sqrt(data[3][c] + epsilon));
          to.beta[c] = places.beta < 0 ? 0 : data[places.beta][c];
        }
      },
      program);
  WithElement(type, [&]<typename Element>(Element) {
    AddLoopStep(
        rows.units(), rows.grain(), {x, table, ChannelRows::Out(node.outputs[0], layout, program)},
        [rows, bounds = FusedReluBounds(node)](const RunContext&, const LoopTensors& data,
                                               int64_t begin, int64_t end) {
          const ChannelTable from(data[1], rows);
          for (int64_t i = begin; i < end; ++i) {
            const auto [place, count, c] = rows.unit(i);
            NormalizeRows(
                Normalized<Element>{data.At<Element>(0) + place, from.mean + c, from.factor + c,
                                    from.beta + c, bounds.least, bounds.most},
                count, rows.lanes(), data.At<Element>(2) + place);
          }
        },
        program);
  });
  return absl::OkStatus();
}

absl::Status BatchNormalizationBackward(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const auto op = AsFused(static_cast<const BatchNormalizationBackwardOp&>(*node.op));
  Parameters parameters;
  if (op.scale) parameters.gamma = node.inputs[op.gamma()];
  if (op.center) parameters.beta = node.inputs[op.beta()];
  const bool relu = op.relu.has_value();
  const float most = relu ? UpperBound(op.relu->max_value) : 0;
  const ComputeDtype type = program.stored_dtype(node);
  const dnnl::memory::desc layout = ChannelRows::LayoutFor(node.inputs[0], type, program);
  const ChannelRows rows(builder.shape(node.inputs[0]), layout);
  const TensorId x = ChannelRows::In(node.inputs[0], layout, program);
  const TensorId gradient = ChannelRows::In(node.inputs[1], layout, program);
  const TensorId table = builder.AddTensor(ChannelTable::SizeBytes(rows));
  const TensorId sums = builder.AddTensor(UnitSumsBytes(rows));
  std::vector<TensorId> tensors = {table, program.RowMajor(node.inputs[2]),
                                   program.RowMajor(node.inputs[3])};
  const ParameterPlaces places = AddParameters(parameters, &tensors, program);
  AddLoopStep(
      rows.padded_channels(), kElementGrain, std::move(tensors),
      [rows, places, epsilon = op.epsilon](const RunContext&, const LoopTensors& data,
                                           int64_t begin, int64_t end) {
        const ChannelTable to(data[0], rows);
        for (int64_t c = begin; c < end; ++c) {
          to.mean[c] = to.factor[c] = to.beta[c] = 0;
          if (c >= rows.channels()) continue;
          // The same expressions as in forward, so that the ReLU cuts off the same elements.
          to.mean[c] = data[1][c];
          to.factor[c] = static_cast<float>((places.gamma < 0 ? 1 : data[places.gamma][c]) /
                                            std::sqrt(data[2][c] + epsilon));
          to.beta[c] = places.beta < 0 ? 0 : data[places.beta][c];
        }
      },
      program);
  WithElement(type, [&]<typename Element>(Element) {
    AddLoopStep(
        rows.units(), rows.grain(), {x, gradient, table, sums},
        [rows, relu, most](const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const ChannelRows::Unit unit = rows.unit(i);
            SumGradients(InputsOf<Element>(data, unit, rows, most), relu, unit.rows, rows.lanes(),
                         data[3] + i * 2 * rows.lanes());
          }
        },
        program);
  });
  AddLoopStep(
      rows.padded_channels(), kElementGrain,
      {table, sums, program.RowMajor(node.inputs[3]), builder.Output(node.outputs[1]),
       builder.Output(node.outputs[2])},
      [rows, frozen = op.frozen, epsilon = op.epsilon](const RunContext&, const LoopTensors& data,
                                                       int64_t begin, int64_t end) {
        const ChannelTable to(data[0], rows);
        for (int64_t c = begin; c < end; ++c) {
          to.slope[c] = to.offset[c] = 0;
          if (c >= rows.channels()) continue;
          double gradient = 0, product = 0;
          int64_t count = 0;
          ForEachUnitOf(c, rows, data[1],
                        [&](double unit_gradient, double unit_product, int64_t n) {
                          gradient += unit_gradient;
                          product += unit_product;
                          count += n;
                        });
          const double inverse = 1 / std::sqrt(data[2][c] + epsilon);
          const double dgamma = product * inverse;
          data[3][c] = static_cast<float>(dgamma);
          data[4][c] = static_cast<float>(gradient);
          if (frozen) continue;
          to.slope[c] = static_cast<float>(-to.factor[c] * inverse * dgamma / count);
          to.offset[c] = static_cast<float>(-to.factor[c] * gradient / count);
        }
      },
      program);
  WithElement(type, [&]<typename Element>(Element) {
    AddLoopStep(
        rows.units(), rows.grain(),
        {x, gradient, table, ChannelRows::Out(node.outputs[0], layout, program)},
        [rows, relu, most](const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const ChannelRows::Unit unit = rows.unit(i);
            MapGradients(InputsOf<Element>(data, unit, rows, most), relu, unit.rows, rows.lanes(),
                         data.At<Element>(3) + unit.place);
          }
        },
        program);
  });
  return absl::OkStatus();
}

}  // namespace shoal::cpu
