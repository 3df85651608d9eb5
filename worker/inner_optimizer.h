#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/model/model_layout.h"
#include "common/model/variable.h"
#include "common/optimizer/optimizer.h"
#include "common/sharding/shard_map.h"
#include "worker/compute/page_aligned.h"

namespace shoal {

// A worker's own optimizer, of the strategy local: between two exchanges it takes as many steps as
// a step of the job has batches, from the values that were pulled, and what is pushed is how far
// they came (docs/protocol.md, section 14). Its slots go on from one step of the job to the next,
// and are the worker's alone: in no checkpoint, and forgotten with the timeline. Where chunks are
// exchanged one by one (Fragments), so do its values. Buffers are laid out as ModelLayout has it.
// Not thread-safe.
class InnerOptimizer {
 public:
  struct Options {
    std::shared_ptr<const Optimizer> optimizer;
    Clipping difference_clipping;  // of what is pushed: the outer optimizer's
    uint64_t batches_per_step =
        1;  // of a whole step of the job; the last of an epoch may have fewer
    std::vector<Variable> variables;
    bool by_chunks = false;  // Exchange() and Merge() will be called
  };
  // Takes its memory: BytesOf().
  explicit InnerOptimizer(Options options);

  // Values and slots, in bytes; the sums of moving averages are small beside them.
  static uint64_t BytesOf(const Optimizer& optimizer, const ModelLayout& layout, bool by_chunks);

  // Begins a step of the job with these values, of the whole model.
  void Begin(std::span<const float> parameters);
  // The values that it has come to, on which the next batch is computed. In one place for ever.
  std::span<float> values() { return values_; }
  // One update, by what a batch would push: gradients, which are clipped in place, and samples of
  // moving averages. `batch` is its number in the job, by which schedules give the learning rate;
  // corrections of bias go by how many updates the slots have had.
  void Update(uint64_t batch, std::span<float> pushed);
  // What the step of the job pushes. Of what the optimizer updates it is how far the values went
  // down since Begin(parameters); of a moving average with momentum m the one sample that, taken in
  // with m^H, as a ps takes that of H batches, does to the values what those of the h batches of
  // this step do one after the other.
  void Finish(std::span<const float> parameters, std::span<float> pushed);

  // The same of one chunk alone, since its last exchange, and not clipped. The values go on. All
  // chunks that a moving average has parts in are exchanged together: the sample is written with
  // the first one.
  void Exchange(const Chunk& chunk, std::span<const float> parameters, std::span<float> pushed);
  // The answer, of the chunk's Exchange(), is in `parameters`: the values come to be that, and what
  // they have gone on by since then.
  void Merge(const Chunk& chunk, std::span<const float> parameters);
  // Begin() was called, and not Forget() since then.
  bool begun() const { return begun_; }

  // Slots are as at the beginning again.
  void Forget();

 private:
  // Of a moving average with momentum m: sum of m^(h - 1 - i) x_i over so many batches h.
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
  // Those that the optimizer updates, for clipping.
  std::vector<std::span<float>> OptimizedPartsOf(std::span<float> buffer) const;

  const Options options_;
  const ModelLayout layout_;
  PageAlignedFloats values_;
  std::vector<float> exchanged_;  // values as they were then; empty where it is all at once
  bool begun_ = false;
  std::vector<std::vector<float>> slots_;  // each laid out as the values
  uint64_t updates_ = 0;                   // that they have had
  std::vector<Samples> samples_;           // by variable
};

}  // namespace shoal
