#include "ps/store/round_sum.h"

#include <span>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/optimizer/vectorize.h"
#include "ps/store/gradient_runs.h"

namespace shoal {
namespace {

std::string Text(const Round& round) {
  return absl::StrCat("round ", round.number, " of ", round.count, " steps from ", round.first,
                      " on");
}

absl::Status Wrong(const Round& round, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(Text(round), ": ", what));
}

}  // namespace

RoundSum::RoundSum(size_t size, uint64_t max_steps) : size_(size), max_steps_(max_steps) {}

absl::Status RoundSum::Check(const Round& round, uint64_t step, uint64_t version) const {
  if (round.count > max_steps_) {
    return Wrong(round, absl::StrCat("a round of this job has ", max_steps_,
                                     " at most: the worker has another job"));
  }
  if (!round.Contains(step)) return Wrong(round, "the step is not one of them");
  if (round.number > round.first)
    return Wrong(round, "the rounds before it have no steps: the worker has another job");
  if (round.first / max_steps_ + (round.first % max_steps_ != 0) > round.number)
    return Wrong(round, "the rounds before it have fewer steps: the worker has another job");
  if (round_.has_value() && *round_ != round)
    return Wrong(round, absl::StrCat("the chunk is in ", Text(*round_)));
  if (round.first != version) {
    return Wrong(round, absl::StrCat("the chunk is at version ", version,
                                     ", and accepts the round that begins there"));
  }
  return absl::OkStatus();
}

const Message* RoundSum::Add(const Round& round, uint64_t step, const Message& gradient) {
  if (round.count == 1) return &gradient;
  if (!round_.has_value()) {
    if (sum_.data() == nullptr) {
      sum_ = AlignedBuffer(size_);
      mean_.payload = {{reinterpret_cast<const char*>(sum_.data()), size_ * sizeof(float)}};
    }
    round_ = round;
    added_ = 0;
  }
  if (step != round.first + added_) {
    std::unique_ptr<float[]>& early = early_[step];
    early = std::make_unique_for_overwrite<float[]>(size_);
    CopyPayload(gradient, 0, early.get(), size_ * sizeof(float));
    return nullptr;
  }
  AddInTurn(gradient);
  for (auto next = early_.begin(); next != early_.end() && next->first == round.first + added_;
       next = early_.erase(next)) {
    const Message kept{
        .payload = {{reinterpret_cast<const char*>(next->second.get()), size_ * sizeof(float)}}};
    AddInTurn(kept);
  }
  if (added_ < round.count) return nullptr;
  const auto count = static_cast<float>(round.count);
  for (float& value : std::span(sum_.data(), size_)) value /= count;
  round_.reset();
  return &mean_;
}

void RoundSum::AddInTurn(const Message& gradient) {
  ++added_;
  // The first gradient is copied, not added: 0 + -0 would be another zero.
  if (added_ == 1) return CopyPayload(gradient, 0, sum_.data(), size_ * sizeof(float));
  ForEachRun(gradient, [this](size_t offset, std::span<const float> run) {
    const auto* const from = reinterpret_cast<const UnalignedFloat*>(run.data());
    float* const sum = sum_.data() + offset;
    for (size_t i = 0; i < run.size(); ++i) sum[i] += from[i];
  });
}

}  // namespace shoal
