#include "common/checkpoint/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/safetensors_header.h"

// A safetensors file (https://huggingface.co/docs/safetensors):
//
//   file   = LENGTH header data
//   LENGTH = u64, little-endian: bytes of `header`, at most 100,000,000
//   header = JSON (safetensors_header.cc), then blanks, so that data begins at a multiple of 8
//   data   = the tensors' bytes, little-endian, row-major, end to end without holes up to the
//   file's end

namespace shoal {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are copied as they lie");

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr uint64_t kAlignment = 8;

template <typename T>
std::vector<float> ToFloats(const std::vector<char>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<float>(value);
  }
  return values;
}

absl::Status Broken(const std::string& path, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(path, " is not a whole safetensors file: ", what));
}

}  // namespace

SafetensorsLayout LayOutSafetensors(const std::vector<std::pair<std::string, Shape>>& tensors,
                                    const std::map<std::string, std::string>& metadata) {
  SafetensorsLayout layout;
  nlohmann::json json = nlohmann::json::object();
  if (!metadata.empty()) json["__metadata__"] = metadata;
  uint64_t end = 0;
  for (const auto& [name, shape] : tensors) {
    const uint64_t size = static_cast<uint64_t>(ElementCount(shape)) * sizeof(float);
    json[name] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {end, end + size}}};
    layout.tensors.push_back({name, "F32", shape, end, size});
    end += size;
  }
  std::string text = json.dump();
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');

  const uint64_t length = text.size();
  layout.header.resize(kLengthBytes);
  std::memcpy(layout.header.data(), &length, kLengthBytes);
  layout.header += text;
  for (TensorEntry& tensor : layout.tensors) tensor.begin += layout.header.size();
  layout.file_size = layout.header.size() + end;
  return layout;
}

absl::StatusOr<std::unique_ptr<SafetensorsFile>> SafetensorsFile::Open(const std::string& path,
                                                                       FileSystem* files) {
  SHOAL_ASSIGN_OR_RETURN(const std::unique_ptr<File> opened,
                         files->Open(path, FileSystem::Mode::kRead));
  std::unique_ptr<SafetensorsFile> file(new SafetensorsFile(path, files));
  SHOAL_ASSIGN_OR_RETURN(file->size_, opened->Size());
  if (file->size_ < kLengthBytes) {
    return Broken(path, absl::StrCat("it has ", file->size_, " bytes, too few for a header"));
  }
  uint64_t length = 0;
  SHOAL_RETURN_IF_ERROR(opened->ReadAt(0, &length, kLengthBytes));
  if (length > kMaxHeaderBytes) {
    return Broken(path, absl::StrCat("it announces a header of ", length, " bytes; at most ",
                                     kMaxHeaderBytes, " are allowed"));
  }
  if (length > file->size_ - kLengthBytes) {
    return Broken(path, absl::StrCat("it announces a header of ", length, " bytes, but ends after ",
                                     file->size_ - kLengthBytes));
  }
  std::string json(length, '\0');
  SHOAL_RETURN_IF_ERROR(opened->ReadAt(kLengthBytes, json.data(), length));
  absl::StatusOr<std::vector<TensorEntry>> tensors =
      ParseSafetensorsHeader(json, kLengthBytes + length, file->size_);
  if (!tensors.ok()) return Broken(path, std::string(tensors.status().message()));
  file->tensors_ = *std::move(tensors);
  for (size_t i = 0; i < file->tensors_.size(); ++i) file->by_name_[file->tensors_[i].name] = i;
  return file;
}

const TensorEntry* SafetensorsFile::Find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

absl::Status SafetensorsFile::Read(const TensorEntry& entry, uint64_t offset_bytes, void* out,
                                   uint64_t size_bytes) const {
  if (offset_bytes > entry.size || size_bytes > entry.size - offset_bytes) {
    return absl::OutOfRangeError(absl::StrCat(path(), ": \"", entry.name, "\" has ", entry.size,
                                              " bytes; the read asks for ", size_bytes,
                                              " from byte ", offset_bytes));
  }
  SHOAL_ASSIGN_OR_RETURN(const std::unique_ptr<File> opened,
                         files_->Open(path_, FileSystem::Mode::kRead));
  return opened->ReadAt(entry.begin + offset_bytes, out, size_bytes);
}

absl::StatusOr<std::vector<float>> SafetensorsFile::ReadFloats(const TensorEntry& entry) const {
  if (entry.dtype == "F32") {
    std::vector<float> values(entry.size / sizeof(float));
    SHOAL_RETURN_IF_ERROR(Read(entry, 0, values.data(), entry.size));
    return values;
  }
  std::vector<char> bytes(entry.size);
  SHOAL_RETURN_IF_ERROR(Read(entry, 0, bytes.data(), entry.size));
  if (entry.dtype == "F64") return ToFloats<double>(bytes);
  if (entry.dtype == "I32") return ToFloats<int32_t>(bytes);
  if (entry.dtype == "I64") return ToFloats<int64_t>(bytes);
  if (entry.dtype == "U8") return ToFloats<uint8_t>(bytes);
  return absl::UnimplementedError(absl::StrCat(path(), ": \"", entry.name, "\" is of dtype ",
                                               entry.dtype,
                                               "; only F32, F64, I32, I64 and U8 can be read"));
}

}  // namespace shoal
