#include "coordinator/takeover/first_checkpoint.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/log/logging.h"
#include "common/model/initializer.h"
#include "common/saved_model/initial_weights.h"

namespace shoal {
namespace {

constexpr int64_t kPieceValues = int64_t{256} << 10;

// Writes the variable as tensor `name`: the saved values, or without `tensor` those that a ps would
// begin with, some rows at a time.
absl::Status WriteVariable(const std::string& name, const Variable& variable, uint64_t seed,
                           const SavedWeights& saved, const SavedTensor* tensor,
                           CheckpointWriter* writer) {
  const int64_t rows = variable.shape.empty() ? 1 : variable.shape[0];
  const int64_t row_size = rows == 0 ? 0 : ElementCount(variable.shape) / rows;
  const int64_t piece_rows = std::max<int64_t>(1, kPieceValues / std::max<int64_t>(1, row_size));
  std::vector<float> values;
  for (int64_t row = 0; row < rows; row += piece_rows) {
    const int64_t end = std::min(rows, row + piece_rows);
    values.resize(static_cast<size_t>((end - row) * row_size));
    const auto first = static_cast<uint64_t>(row * row_size);
    if (tensor != nullptr) {
      SHOAL_RETURN_IF_ERROR(ReadSavedValues(saved, *tensor, first, values));
    } else {
      InitializeRows(variable.initializer, variable.name, variable.shape, seed, row, end, values);
    }
    SHOAL_RETURN_IF_ERROR(
        writer->Write(name, first * sizeof(float), values.data(), values.size() * sizeof(float)));
  }
  return absl::OkStatus();
}

absl::Status WriteSlot(const std::string& tensor, const Shape& shape, float value,
                       CheckpointWriter* writer) {
  const std::vector<float> piece(static_cast<size_t>(std::min(ElementCount(shape), kPieceValues)),
                                 value);
  const uint64_t size = static_cast<uint64_t>(ElementCount(shape)) * sizeof(float);
  for (uint64_t done = 0; done < size;) {
    const uint64_t bytes = std::min<uint64_t>(size - done, piece.size() * sizeof(float));
    SHOAL_RETURN_IF_ERROR(writer->Write(tensor, done, piece.data(), bytes));
    done += bytes;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<WrittenPart>> WriteAll(const FirstCheckpoint& first,
                                                  const InitialWeights& weights,
                                                  const std::string& directory, FileSystem* files) {
  SHOAL_RETURN_IF_ERROR(CreateCheckpointFiles(*first.layout, directory, files));
  CheckpointWriter writer(first.layout, directory, files);
  const std::vector<Variable>& variables = *first.variables;
  for (size_t i = 0; i < variables.size(); ++i) {
    SHOAL_RETURN_IF_ERROR(WriteVariable(variables[i].name, variables[i], first.job->seed,
                                        weights.saved, weights.tensors[i], &writer));
  }
  const std::vector<std::string>& slots = first.optimizer->slot_names();
  for (size_t slot = 0; slot < slots.size(); ++slot) {
    // The averages begin as the variables, because readers of this checkpoint's model use them.
    const bool averages = slots[slot] == first.optimizer->average_slot();
    for (size_t i = 0; i < variables.size(); ++i) {
      const Variable& variable = variables[i];
      if (!variable.has_slots()) continue;
      const std::string name = absl::StrCat(slots[slot], "/", variable.name);
      SHOAL_RETURN_IF_ERROR(
          averages
              ? WriteVariable(name, variable, first.job->seed, weights.saved, weights.tensors[i],
                              &writer)
              : WriteSlot(name, variable.shape,
                          first.optimizer->initial_slot_value(static_cast<int>(slot)), &writer));
    }
  }
  return writer.Finish();
}

}  // namespace

absl::StatusOr<StoredCheckpoint> WriteFirstCheckpoint(const FirstCheckpoint& first, uint64_t term,
                                                      CheckpointStore* store) {
  const Job::InitialWeights& wanted = first.job->initial_weights;
  SHOAL_ASSIGN_OR_RETURN(const uint32_t checksum, ChecksumOfWeights(wanted.path));
  if (checksum != wanted.crc32c) {
    return absl::FailedPreconditionError(absl::StrCat(
        wanted.path, ": has changed since the job was started: its CRC-32C is ",
        absl::Hex(checksum, absl::kZeroPad8), "; the job's initial_weights name ",
        absl::Hex(wanted.crc32c, absl::kZeroPad8), ". Put the file back, or start the job again"));
  }
  SHOAL_ASSIGN_OR_RETURN(const InitialWeights weights,
                         FindInitialWeights(wanted.path, first.job->model_json, *first.variables));
  LogInfo(absl::StrCat("initial weights: ", weights.tensors.size() - weights.missed.size(), " of ",
                       weights.tensors.size(), " variables are loaded from ", wanted.path));
  for (const InitialWeights::Missed& each : weights.missed)
    LogInfo(absl::StrCat("not loaded: ", each.variable, ": ", each.why));
  SHOAL_ASSIGN_OR_RETURN(const std::string directory, store->CreateDirectory(0, term));
  absl::StatusOr<std::vector<WrittenPart>> parts =
      WriteAll(first, weights, directory, store->files());
  if (!parts.ok()) {
    store->Discard(directory);
    return parts.status();
  }
  absl::StatusOr<StoredCheckpoint> stored =
      store->Commit(directory, *first.layout, *parts, first.texts, first.manifest);
  if (!stored.ok()) store->Discard(directory);
  return stored;
}

}  // namespace shoal
