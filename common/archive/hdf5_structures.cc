#include "common/archive/hdf5_structures.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/archive/hdf5_fields.h"
#include "common/base/status_macros.h"
#include "common/base/text/printable.h"

namespace shoal {
namespace {

constexpr size_t kMaxHeaderBlocks = 64;
constexpr uint64_t kMaxHeaderBytes = uint64_t{1} << 20;  // of one block
constexpr uint64_t kMaxMetadataBytes = uint64_t{256} << 20;

}  // namespace

std::string QuotedHdf5Path(const std::string& path) {
  return absl::StrCat("\"", path.empty() ? "/" : Printable(path, kMaxNameBytes), "\"");
}

absl::Status Hdf5Structures::Damaged(uint64_t at, const std::string& what) const {
  return absl::DataLossError(absl::StrCat(source_.name, ": damaged at byte ", at, ": ", what));
}

absl::StatusOr<std::string> Hdf5Structures::Read(uint64_t at, uint64_t size,
                                                 const std::string& what) {
  const uint64_t end = source_.size;
  if (at > end || size > end - at)
    return Damaged(at, absl::StrCat(what, " ends after the end of the file, byte ", end));
  metadata_bytes_ += size;
  if (metadata_bytes_ > std::min(kMaxMetadataBytes, 4 * end))
    return Damaged(at, "its structures overlap, or are larger than any that Keras writes");
  std::string bytes(size, '\0');
  SHOAL_RETURN_IF_ERROR(source_.read(at, bytes.data(), size));
  return bytes;
}

absl::StatusOr<std::string> Hdf5Structures::ReadSigned(uint64_t at, uint64_t size,
                                                       const std::string& signature) {
  SHOAL_ASSIGN_OR_RETURN(std::string bytes, Read(at, size, absl::StrCat("a \"", signature, "\"")));
  if (!bytes.starts_with(signature))
    return Damaged(at, absl::StrCat("there is no \"", signature, "\""));
  return bytes;
}

absl::StatusOr<uint64_t> Hdf5Structures::ReadSuperblock() {
  std::string bytes(std::min<uint64_t>(source_.size, 100), '\0');
  SHOAL_RETURN_IF_ERROR(source_.read(0, bytes.data(), bytes.size()));
  if (!bytes.starts_with(kHdf5Signature)) {
    return absl::DataLossError(
        absl::StrCat(source_.name, ": is not an HDF5 file: it does not begin with the signature"));
  }
  Hdf5Fields fields(bytes);
  fields.Skip(kHdf5Signature.size());
  const uint64_t version = fields.Take(1);
  if (version > 1) {
    return absl::UnimplementedError(absl::StrCat(
        source_.name, ": is HDF5 with a superblock of version ", version,
        ", as h5py writes it with libver=\"latest\"; Keras's save() writes version 0"));
  }
  fields.Skip(4);
  const uint64_t offset_bytes = fields.Take(1), length_bytes = fields.Take(1);
  if (offset_bytes != 8 || length_bytes != 8)
    return Damaged(13, "offsets and lengths are not of 8 bytes");
  fields.Skip(1);
  leaf_entries_ = 2 * fields.Take(2);
  node_entries_ = 2 * fields.Take(2);
  fields.Skip(version == 0 ? 4 : 8);
  const uint64_t base = fields.Take(8);
  fields.Skip(8);
  const uint64_t end = fields.Take(8);
  fields.Skip(16);  // driver, name of the root
  const uint64_t root = fields.Take(8);
  if (!fields.ok()) return Damaged(bytes.size(), "the file ends within its superblock");
  if (base != 0) return Damaged(24, "it does not begin at byte 0");
  if (end > source_.size) {
    return absl::DataLossError(absl::StrCat(source_.name, ": is cut off: it has ", source_.size,
                                            " bytes and says that it has ", end));
  }
  return root;
}

absl::StatusOr<std::vector<Hdf5Message>> Hdf5Structures::ReadHeader(const std::string& path,
                                                                    uint64_t at) {
  SHOAL_ASSIGN_OR_RETURN(const std::string prefix,
                         Read(at, 16, absl::StrCat("the header of ", QuotedHdf5Path(path))));
  Hdf5Fields fields(prefix);
  if (const uint64_t version = fields.Take(1); version != 1) {
    return Damaged(at, absl::StrCat("the header of ", QuotedHdf5Path(path),
                                    " is not of version 1, which Keras writes"));
  }
  fields.Skip(1);
  const uint64_t count = fields.Take(2);
  fields.Skip(4);
  std::vector<std::pair<uint64_t, uint64_t>> blocks = {{at + 16, fields.Take(4)}};
  std::vector<Hdf5Message> messages;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const auto [begin, size] = blocks[i];
    if (size > kMaxHeaderBytes || blocks.size() > kMaxHeaderBlocks)
      return Damaged(begin, absl::StrCat("the header of ", QuotedHdf5Path(path), " is too large"));
    SHOAL_ASSIGN_OR_RETURN(const std::string block,
                           Read(begin, size, absl::StrCat("the header of ", QuotedHdf5Path(path))));
    Hdf5Fields left(block);
    while (left.left() >= 8 && messages.size() < count) {
      Hdf5Message message{.at = begin + block.size() - left.left()};
      message.type = static_cast<uint16_t>(left.Take(2));
      const uint64_t message_bytes = left.Take(2);
      left.Skip(4);
      message.data = left.TakeBytes(message_bytes);
      if (!left.ok())
        return Damaged(message.at, absl::StrCat("a message of ", QuotedHdf5Path(path),
                                                " ends after its header"));
      if (message.type == Hdf5Message::kContinuation) {
        Hdf5Fields block_at(message.data);
        const uint64_t offset = block_at.Take(8);
        blocks.emplace_back(offset, block_at.Take(8));
      }
      messages.push_back(std::move(message));
    }
  }
  return messages;
}

absl::StatusOr<const std::string*> Hdf5Structures::FindInHeap(uint64_t at, uint64_t index) {
  auto heap = heaps_.find(at);
  if (heap == heaps_.end()) {
    SHOAL_ASSIGN_OR_RETURN(const std::string head, ReadSigned(at, 16, "GCOL"));
    Hdf5Fields fields(head);
    fields.Skip(8);
    const uint64_t size = fields.Take(8);
    if (size < 16 || size > kMaxHdf5HeapBytes)
      return Damaged(
          at, absl::StrCat("a \"GCOL\" has ", size, " bytes; expected 16 to ", kMaxHdf5HeapBytes));
    SHOAL_ASSIGN_OR_RETURN(const std::string bytes, Read(at + 16, size - 16, "a \"GCOL\""));
    heap = heaps_.emplace(at, std::map<uint64_t, std::string>()).first;
    Hdf5Fields left(bytes);
    while (left.left() >= 16) {
      const uint64_t number = left.Take(2);
      left.Skip(6);
      const uint64_t object_bytes = left.Take(8);
      if (number == 0) break;  // the free space
      const std::string_view object = left.TakeBytes(object_bytes);
      if (!left.ok()) return Damaged(at, "an object of a \"GCOL\" ends after it");
      left.Skip(std::min<uint64_t>(RoundUp8(object_bytes) - object_bytes, left.left()));
      heap->second[number] = object;
    }
  }
  const auto found = heap->second.find(index);
  return found == heap->second.end() ? nullptr : &found->second;
}

}  // namespace shoal
