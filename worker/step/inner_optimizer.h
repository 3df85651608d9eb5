#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/model/model_layout.h"
#include "common/model/variable.h"
#include "common/optimizer/optimizer.h"
#include "common/sharding/shard_map.h"
#include "worker/compute/program/page_aligned.h"

namespace shoal {

// A worker's own optimizer for the strategy local. Between two exchanges it takes one step for each
// batch of a step of the job, starting from the pulled values. The worker then pushes the distance
// that the values have moved (docs/protocol.md, section 14). Its slots live across steps of the job
// and belong to the worker alone: no checkpoint has them, and a new timeline resets them. If chunks
// are exchanged one by one (Fragments), its values also live across steps. Buffers have the layout
// of ModelLayout. Not thread-safe.
class InnerOptimizer {
 public:
  struct Options {
    std::shared_ptr<const Optimizer> optimizer;
    Clipping difference_clipping;  // for the pushed difference: the outer optimizer's
    uint64_t batches_per_step =
        1;  // of a whole step of the job; the last of an epoch may have fewer
    std::vector<Variable> variables;
    bool by_chunks = false;  // allows Exchange() and Merge()
  };
  // Allocates its memory: BytesOf().
  explicit InnerOptimizer(Options options);

  // The size of values and slots, in bytes; the sums of moving averages are small in comparison.
  static uint64_t BytesOf(const Optimizer& optimizer, const ModelLayout& layout, bool by_chunks);

  // Begins a step of the job with these values of the whole model.
  void Begin(std::span<const float> parameters);
  // The current values, for computing the next batch. Their address never changes.
  std::span<float> values() { return values_; }
  // Makes one update from the values that a batch would push: gradients, which it clips in place,
  // and samples of moving averages. `batch` is its number in the job, for learning rate schedules.
  // Bias corrections use the number of updates of the slots.
  void Update(uint64_t batch, std::span<float> pushed);
  // Writes the values that the step of the job pushes. For a variable that the optimizer updates,
  // this is the decrease of the values since Begin(parameters). For a moving average with momentum
  // m it is one sample that replaces those of this step's h batches. A ps takes it in with m^H, as
  // for H batches, and gets the same values as from the h samples one after the other.
  void Finish(std::span<const float> parameters, std::span<float> pushed);

  // The same for one chunk, since its last exchange, and without clipping. The values continue from
  // where they are. All chunks with parts of a moving average must be exchanged together: the
  // sample is written with the first of them.
  void Exchange(const Chunk& chunk, std::span<const float> parameters, std::span<float> pushed);
  // Takes in the answer to the chunk's Exchange(), which is in `parameters`: the values become the
  // answer plus their own progress since the Exchange().
  void Merge(const Chunk& chunk, std::span<const float> parameters);
  // Whether Begin() was called since the last Forget().
  bool begun() const { return begun_; }

  // Resets the slots to their initial state.
  void Forget();

 private:
  // For a moving average with momentum m: the sum of m^(h - 1 - i) x_i over h = `batches` batches.
  struct Samples {
    std::vector<float> sum;
    uint64_t batches = 0;
    void Clear();
  };

  std::span<float> PartOf(std::span<float> buffer, size_t variable) const {
    const ModelLayout::Extent& extent = layout_.variables[variable];
    return buffer.subspan(extent.offset, extent.size);
  }
  void SampleOf(const Samples& samples, double momentum, std::span<const float> values,
                std::span<float> sample) const;
  // The parts that the optimizer updates, for clipping.
  std::vector<std::span<float>> OptimizedPartsOf(std::span<float> buffer) const;

  const Options options_;
  const ModelLayout layout_;
  PageAlignedFloats values_;
  std::vector<float> exchanged_;  // values at the last Exchange(); empty without by_chunks
  bool begun_ = false;
  std::vector<std::vector<float>> slots_;  // each laid out like the values
  uint64_t updates_ = 0;                   // number of updates to the slots
  std::vector<Samples> samples_;           // by variable
};

}  // namespace shoal
