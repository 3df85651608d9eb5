#include "worker/compute/micro_batches.h"

namespace shoal {
namespace {

template <typename Element>
std::span<const Element> PartOfRows(std::span<const Element> rows, int64_t examples, int64_t first,
                                    int64_t count) {
  const size_t size = rows.size() / examples;
  return rows.subspan(first * size, count * size);
}

}  // namespace

Batch PartOf(const Batch& batch, int64_t first, int64_t count) {
  Batch part = batch;
  part.examples = count;
  for (std::span<const float>& input : part.inputs)
    input = PartOfRows(input, batch.examples, first, count);
  part.target = PartOfRows(batch.target, batch.examples, first, count);
  part.indices = PartOfRows(batch.indices, batch.examples, first, count);
  part.weights = PartOfRows(batch.weights, batch.examples, first, count);
  part.id = 0;
  part.next = nullptr;
  return part;
}

void AddPart(std::span<const float> part, double share, bool begins, std::span<float> sum) {
  const auto factor = static_cast<float>(share);
  for (size_t i = 0; i < sum.size(); ++i)
    sum[i] = begins ? factor * part[i] : sum[i] + factor * part[i];
}

void AddTo(const BatchResult& part, BatchResult* sums) {
  sums->examples += part.examples;
  sums->loss_sum += part.loss_sum;
  sums->overflowed = sums->overflowed || part.overflowed;
  sums->metric_sums.resize(part.metric_sums.size());
  for (size_t i = 0; i < part.metric_sums.size(); ++i) sums->metric_sums[i] += part.metric_sums[i];
}

}  // namespace shoal
