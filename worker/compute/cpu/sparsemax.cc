#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "worker/compute/cpu/loop_kernel.h"

namespace shoal::cpu {
namespace {

// The min number of rows for another thread. Rows are sorted, which takes longer.
constexpr int64_t kSparsemaxRowGrain = 16;

// Finds k and tau of SparsemaxOp's comment for one row after another. It computes in double,
// because the op jumps where k changes, and rounding must not change k.
class Thresholds {
 public:
  explicit Thresholds(int64_t columns) : places_(columns) {}

  // Moves to the row at `x`.
  void Find(const float* x) {
    std::iota(places_.begin(), places_.end(), 0);
    std::stable_sort(places_.begin(), places_.end(), [x](int a, int b) {
      return std::isnan(x[b]) ? !std::isnan(x[a]) : x[a] > x[b];
    });
    double c = 0, sum = 0;
    k_ = 0;
    for (const int place : places_) {
      c += x[place];
      if (k_ > 0 && !(1 + static_cast<double>(k_ + 1) * x[place] > c)) break;
      sum += c;
      ++k_;
    }
    tau_ = (sum - 1) / static_cast<double>(k_);
  }

  double tau() const { return tau_; }
  int64_t k() const { return k_; }
  int place(int64_t j) const { return places_[j]; }  // place of z[j + 1]

 private:
  std::vector<int> places_;
  int64_t k_ = 0;
  double tau_ = 0;
};

}  // namespace

absl::Status Sparsemax(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const auto [rows, columns] = CpuProgramBuilder::ExtentsOf(builder.shape(node.outputs[0]));
  AddLoopStep(
      rows, kSparsemaxRowGrain, {program.RowMajor(node.inputs[0]), builder.Output(node.outputs[0])},
      [columns = columns](const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
        Thresholds thresholds(columns);
        for (int64_t row = begin; row < end; ++row) {
          const float* x = data[0] + row * columns;
          float* y = data[1] + row * columns;
          thresholds.Find(x);
          const double tau = thresholds.tau();
          for (int64_t i = 0; i < columns; ++i) {
            y[i] = x[i] < tau ? 0 : static_cast<float>(x[i] - tau);
          }
        }
      },
      program);
  return absl::OkStatus();
}

absl::Status SparsemaxBackward(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const auto [rows, columns] = CpuProgramBuilder::ExtentsOf(builder.shape(node.outputs[0]));
  AddLoopStep(
      rows, kSparsemaxRowGrain,
      {program.RowMajor(node.inputs[0]), program.RowMajor(node.inputs[1]),
       builder.Output(node.outputs[0])},
      [columns = columns](const RunContext&, const LoopTensors& data, int64_t begin, int64_t end) {
        Thresholds thresholds(columns);
        for (int64_t row = begin; row < end; ++row) {
          const float* x = data[0] + row * columns;
          const float* dy = data[1] + row * columns;
          float* dx = data[2] + row * columns;
          thresholds.Find(x);
          const double tau = thresholds.tau(), k = static_cast<double>(thresholds.k());
          double of_tau = 0;
          for (int64_t i = 0; i < columns; ++i) {
            dx[i] = (x[i] > tau ? 1.0f : x[i] == tau ? 0.5f : 0.0f) * dy[i];
            of_tau -= dx[i];
          }
          for (int64_t j = 0; j < thresholds.k(); ++j) {
            dx[thresholds.place(j)] +=
                static_cast<float>(of_tau * (k - static_cast<double>(j)) / k);
          }
        }
      },
      program);
  return absl::OkStatus();
}

}  // namespace shoal::cpu
