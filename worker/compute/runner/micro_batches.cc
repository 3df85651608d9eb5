#include "worker/compute/runner/micro_batches.h"

#include <algorithm>

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
  for (InputValues& input : part.inputs) {
    const size_t size = input.size() / batch.examples;
    input = input.Part(first * size, count * size);
  }
  part.target = PartOfRows(batch.target, batch.examples, first, count);
  part.indices = PartOfRows(batch.indices, batch.examples, first, count);
  part.weights = PartOfRows(batch.weights, batch.examples, first, count);
  part.id = 0;
  part.next = nullptr;
  part.first_example += first;
  return part;
}

std::vector<int64_t> PartSizes(int64_t examples, int64_t count) {
  count = std::min(count, examples);
  std::vector<int64_t> sizes(count, examples / count);
  for (int64_t i = 0; i < examples % count; ++i) ++sizes[i];
  return sizes;
}

std::vector<Batch> PartsOf(const Batch& batch, int64_t count) {
  std::vector<Batch> parts;
  int64_t first = 0;
  for (const int64_t examples : PartSizes(batch.examples, count)) {
    parts.push_back(PartOf(batch, first, examples));
    first += examples;
  }
  return parts;
}

double ShareOf(const Batch& part, const Batch& whole) {
  return static_cast<double>(part.examples) / static_cast<double>(whole.examples);
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
