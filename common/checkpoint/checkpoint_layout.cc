#include "common/checkpoint/checkpoint_layout.h"

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/crc32c.h"
#include "common/base/status_macros.h"

namespace shoal {
namespace {

using Tensor = std::pair<std::string, Shape>;

constexpr char kModelPrefix[] = "model-";
constexpr char kOptimizerPrefix[] = "optimizer-";

// Assigns whole tensors, in order, to files. A file ends before the tensor that would make it
// larger than `file_bytes`.
void AppendFiles(const std::string& prefix, const std::vector<Tensor>& tensors, uint64_t file_bytes,
                 CheckpointLayout* layout) {
  std::vector<std::vector<Tensor>> groups;
  uint64_t group_bytes = 0;
  for (const Tensor& tensor : tensors) {
    const uint64_t size = static_cast<uint64_t>(ElementCount(tensor.second)) * sizeof(float);
    if (groups.empty() || (group_bytes > 0 && group_bytes + size > file_bytes)) {
      groups.emplace_back();
      group_bytes = 0;
    }
    groups.back().push_back(tensor);
    group_bytes += size;
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    const int file = static_cast<int>(layout->files.size());
    layout->files.push_back(
        {absl::StrFormat("%s%05d-of-%05d.safetensors", prefix, i + 1, groups.size()),
         LayOutSafetensors(groups[i], {})});
    for (const TensorEntry& entry : layout->files.back().layout.tensors) {
      layout->places[entry.name] = {file, entry};
    }
  }
}

}  // namespace

CheckpointLayout LayOutCheckpoint(const std::vector<Variable>& variables,
                                  const std::vector<std::string>& slot_names, uint64_t file_bytes) {
  std::vector<Tensor> values;
  std::vector<Tensor> slots;
  for (const Variable& variable : variables) values.emplace_back(variable.name, variable.shape);
  for (const std::string& slot : slot_names) {
    for (const Variable& variable : variables) {
      if (variable.has_slots()) {
        slots.emplace_back(absl::StrCat(slot, "/", variable.name), variable.shape);
      }
    }
  }
  CheckpointLayout layout;
  AppendFiles(kModelPrefix, values, file_bytes, &layout);
  AppendFiles(kOptimizerPrefix, slots, file_bytes, &layout);
  return layout;
}

absl::Status CheckVariables(const std::vector<Variable>& variables,
                            const std::vector<std::string>& slot_names) {
  std::set<std::string> names;
  bool any_trainable = false;
  for (const Variable& variable : variables) {
    names.insert(variable.name);
    any_trainable = any_trainable || variable.rule == UpdateRule::kOptimizer;
  }
  if (!any_trainable) {
    return absl::InvalidArgumentError(
        "the model has no trainable variables: there is nothing to train");
  }
  for (const std::string& slot : slot_names) {
    for (const Variable& variable : variables) {
      const std::string tensor = absl::StrCat(slot, "/", variable.name);
      if (!variable.has_slots() || !names.contains(tensor)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "variable \"", tensor, "\" has the name that a checkpoint gives slot \"", slot,
          "\" of variable \"", variable.name, "\"; rename one of the two layers"));
    }
  }
  return absl::OkStatus();
}

bool IsModelFile(const std::string& name) {
  return absl::StartsWith(name, kModelPrefix) && absl::EndsWith(name, ".safetensors");
}

std::string ModelIndexText(const CheckpointLayout& layout) {
  nlohmann::ordered_json json;
  uint64_t total_size = 0;
  nlohmann::json weight_map = nlohmann::json::object();
  for (const CheckpointLayout::File& file : layout.files) {
    if (!IsModelFile(file.name)) continue;
    for (const TensorEntry& entry : file.layout.tensors) {
      weight_map[entry.name] = file.name;
      total_size += entry.size;
    }
  }
  json["metadata"]["total_size"] = total_size;
  json["weight_map"] = weight_map;
  return json.dump(2) + "\n";
}

absl::Status CreateCheckpointFiles(const CheckpointLayout& layout, const std::string& directory,
                                   FileSystem* files) {
  for (const CheckpointLayout::File& file : layout.files) {
    SHOAL_ASSIGN_OR_RETURN(
        const std::unique_ptr<File> created,
        files->Open(absl::StrCat(directory, "/", file.name), FileSystem::Mode::kCreate));
    SHOAL_RETURN_IF_ERROR(created->Allocate(file.layout.file_size));
    SHOAL_RETURN_IF_ERROR(
        created->WriteAt(0, file.layout.header.data(), file.layout.header.size()));
    SHOAL_RETURN_IF_ERROR(created->Sync());
  }
  SHOAL_RETURN_IF_ERROR(
      WriteNewFile(absl::StrCat(directory, "/", kModelIndexName), ModelIndexText(layout), files));
  return files->SyncDirectory(directory);
}

CheckpointWriter::CheckpointWriter(const CheckpointLayout* layout, std::string directory,
                                   FileSystem* files)
    : layout_(layout), directory_(std::move(directory)), file_system_(files) {}

CheckpointWriter::~CheckpointWriter() = default;

absl::Status CheckpointWriter::Write(const std::string& name, uint64_t offset_bytes,
                                     const void* data, uint64_t size_bytes) {
  const auto place = layout_->places.find(name);
  if (place == layout_->places.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the checkpoint's layout has no tensor \"", name, "\""));
  }
  const auto& [index, entry] = place->second;
  if (offset_bytes > entry.size || size_bytes > entry.size - offset_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("\"", name, "\" has ", entry.size, " bytes; ",
                                                   size_bytes, " at byte ", offset_bytes,
                                                   " are beyond it"));
  }
  if (size_bytes == 0) return absl::OkStatus();
  const std::string& file_name = layout_->files[index].name;
  auto written = files_.find(index);
  if (written == files_.end()) {
    if (file_system_->IsLink(directory_)) return LinkError(directory_);
    SHOAL_ASSIGN_OR_RETURN(
        std::unique_ptr<File> opened,
        file_system_->Open(absl::StrCat(directory_, "/", file_name), FileSystem::Mode::kWrite));
    written = files_.emplace(index, WrittenFile{std::move(opened), {}}).first;
  }
  const uint64_t begin = entry.begin + offset_bytes;
  SHOAL_RETURN_IF_ERROR(written->second.file->WriteAt(begin, data, size_bytes));

  std::vector<WrittenPart>& parts = written->second.parts;
  if (parts.empty() || parts.back().offset_bytes + parts.back().size_bytes != begin) {
    parts.push_back({file_name, begin, 0, 0});
  }
  parts.back().crc32c = Crc32c(parts.back().crc32c, data, size_bytes);
  parts.back().size_bytes += size_bytes;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<WrittenPart>> CheckpointWriter::Finish() {
  std::vector<WrittenPart> parts;
  for (const auto& [index, written] : files_) {
    SHOAL_RETURN_IF_ERROR(written.file->Sync());
    parts.insert(parts.end(), written.parts.begin(), written.parts.end());
  }
  files_.clear();
  return parts;
}

}  // namespace shoal
