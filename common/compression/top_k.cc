// The values of largest magnitude, the rest as zeros:
//
//   encoding = index*, value*    k little-endian uint32, rising; k little-endian float32
//   k = fraction times the number of values, rounded up
//
// Of equal magnitudes the first ones are sent. Sent values are exact. The others are the residual,
// which the encoding side adds to its next values ("error feedback", Aji and Heafield,
// arXiv:1704.05021). Not-a-number and infinity count as the largest, and are sent unchanged.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/compression/codec.h"
#include "common/json/json_object.h"

namespace shoal {
namespace {

uint32_t Magnitude(float value) { return std::bit_cast<uint32_t>(value) & 0x7fffffff; }

// Values above `magnitude` are sent, and the first `equal` of those with that magnitude.
struct Threshold {
  uint32_t magnitude = 0;
  size_t equal = 0;
};

// The exponent and the four next bits sort all values into buckets. Only the bucket with the k-th
// largest value is examined further.
Threshold ThresholdOf(std::span<const float> values, size_t k) {
  constexpr int kBucketShift = 19;
  std::array<uint32_t, (uint32_t{1} << 31 >> kBucketShift)> counts{};
  for (const float value : values) ++counts[Magnitude(value) >> kBucketShift];
  size_t bucket = counts.size() - 1;
  size_t above = 0;  // in the buckets above
  while (above + counts[bucket] < k) above += counts[bucket--];
  std::vector<uint32_t> magnitudes;
  magnitudes.reserve(counts[bucket]);
  for (const float value : values) {
    if (Magnitude(value) >> kBucketShift == bucket) magnitudes.push_back(Magnitude(value));
  }
  const auto last = magnitudes.begin() + static_cast<std::ptrdiff_t>(k - above - 1);
  std::nth_element(magnitudes.begin(), last, magnitudes.end(), std::greater<>());
  const auto equal = static_cast<size_t>(std::count(magnitudes.begin(), last + 1, *last));
  return {.magnitude = *last, .equal = equal};
}

class TopK : public Codec {
 public:
  TopK(std::string config, double fraction) : Codec(std::move(config)), fraction_(fraction) {}

  size_t EncodedBytes(size_t count) const override { return Kept(count) * kEntryBytes; }

  void Encode(std::span<const float> values, char* out) const override {
    const size_t k = Kept(values.size());
    if (k == 0) return;
    Threshold threshold = ThresholdOf(values, k);
    char* index_out = out;
    char* value_out = out + k * sizeof(uint32_t);
    for (uint32_t i = 0; i < values.size(); ++i) {
      const uint32_t magnitude = Magnitude(values[i]);
      if (magnitude < threshold.magnitude) continue;
      if (magnitude == threshold.magnitude) {
        if (threshold.equal == 0) continue;
        --threshold.equal;
      }
      std::memcpy(index_out, &i, sizeof(i));
      std::memcpy(value_out, &values[i], sizeof(float));
      index_out += sizeof(uint32_t);
      value_out += sizeof(float);
    }
  }

  absl::Status Decode(std::span<const char> bytes, std::span<float> out) const override {
    const absl::Status size = CheckSize(bytes.size(), out.size());
    if (!size.ok()) return size;
    std::fill(out.begin(), out.end(), 0.0f);
    const size_t k = Kept(out.size());
    uint64_t next = 0;  // the min valid value of the next index
    for (size_t i = 0; i < k; ++i) {
      uint32_t index;
      std::memcpy(&index, bytes.data() + i * sizeof(index), sizeof(index));
      if (index < next || index >= out.size()) {
        return Damaged(
            absl::StrCat("index ", index, "; expected rising indices below ", out.size()));
      }
      std::memcpy(&out[index], bytes.data() + k * sizeof(index) + i * sizeof(float), sizeof(float));
      next = uint64_t{index} + 1;
    }
    return absl::OkStatus();
  }

  bool leaves_residual() const override { return true; }

 private:
  static constexpr size_t kEntryBytes = sizeof(uint32_t) + sizeof(float);

  size_t Kept(size_t count) const {
    return static_cast<size_t>(std::ceil(fraction_ * static_cast<double>(count)));
  }

  const double fraction_;
};

}  // namespace

// More than half the values would take more bytes than sending all of them.
std::unique_ptr<const Codec> MakeTopK(JsonObject& options) {
  double fraction = 0.01;
  options.ReadNumber("fraction", {.min = 0, .max = 0.5, .above_min = true}, &fraction);
  const nlohmann::json config = {{"name", "top_k"}, {"fraction", fraction}};
  return std::make_unique<TopK>(config.dump(), fraction);
}

}  // namespace shoal
