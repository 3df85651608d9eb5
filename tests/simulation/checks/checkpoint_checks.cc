#include "tests/simulation/checks/checkpoint_checks.h"

#include <cstdint>
#include <span>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/model/variable.h"
#include "tests/simulation/expected_sums.h"

namespace shoal {

void CheckpointChecks::OnRenamed(const std::string& path) {
  if (absl::EndsWith(path, "/manifest.json")) Check(path.substr(0, path.rfind('/')));
}

std::vector<StoredCheckpoint> CheckpointChecks::Stored() const {
  CheckpointStore store(job_.workload().run_dir + "/checkpoints", &disk_);
  absl::StatusOr<std::vector<StoredCheckpoint>> stored = store.List(nullptr);
  if (!stored.ok()) return {};
  std::erase_if(*stored, [this](const StoredCheckpoint& checkpoint) {
    return damaged_.contains(checkpoint.directory);
  });
  return *stored;
}

void CheckpointChecks::CheckStored() const {
  for (const StoredCheckpoint& checkpoint : Stored()) Check(checkpoint.directory);
}

void CheckpointChecks::Check(const std::string& directory) const {
  if (damaged_.contains(directory)) return;
  const auto reader = CheckpointReader::Open(directory, &disk_);
  const absl::Status whole = reader.ok() ? (*reader)->Verify() : reader.status();
  if (!whole.ok()) {
    return world_.Fail(absl::StrCat(directory, " is not whole: ", whole.ToString()));
  }
  for (size_t v = 0; v < job_.sums().variables().size(); ++v)
    CheckVariable(directory, **reader, static_cast<int>(v));
}

void CheckpointChecks::CheckVariable(const std::string& directory, const CheckpointReader& reader,
                                     int index) const {
  const Variable& variable = job_.sums().variables()[index];
  const uint64_t cut = reader.manifest().cut_step;
  std::vector<std::string> tensors;
  if (variable.has_slots()) {
    for (const std::string& slot : job_.workload().sums_slots())
      tensors.push_back(absl::StrCat(slot, "/", variable.name));
  }
  const bool in_slots = !tensors.empty();
  if (!in_slots) tensors.push_back(variable.name);
  std::vector<std::vector<float>> read_values;
  std::vector<std::span<const float>> slots;
  for (const std::string& tensor : tensors) {
    std::vector<float>& values = read_values.emplace_back(ElementCount(variable.shape));
    const absl::Status read =
        reader.Read(tensor, variable.shape, 0, values.data(), values.size() * sizeof(float));
    if (!read.ok()) return world_.Fail(read.ToString());
    if (in_slots) slots.push_back(values);
  }
  if (const absl::Status buffer = job_.CheckBuffer(slots, cut); !buffer.ok()) {
    return world_.Fail(absl::StrCat(directory, ": ", variable.name, " ", buffer.message()));
  }
  for (size_t i = 0; i < read_values[0].size(); ++i) {
    const float expected = job_.sums().Below(cut, index, static_cast<int64_t>(i));
    const float sum = job_.SumOf(slots, read_values[0], i);
    if (sum == expected) continue;
    return world_.Fail(absl::StrCat(directory, ": ", absl::StrJoin(tensors, " and "), " make ", sum,
                                    " at ", i, ", but the steps below ", cut, " make ", expected));
  }
}
}  // namespace shoal
