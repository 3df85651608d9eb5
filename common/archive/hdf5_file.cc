// Reads HDF5, as https://docs.hdfgroup.org/hdf5/develop/_f_m_t3.html describes it. Of that this
// much, which is what h5py writes by default and Keras with it:
//
//   superblock    version 0 or 1, at byte 0; 8-byte offsets and lengths
//   group         object header 1 with a symbol table: a "TREE" of version-1 nodes, whose leaves
//                 are "SNOD"s of entries (name, address of an object); names lie in a "HEAP"
//   data set      object header 1 with data space, data type and layout 3, contiguous
//   attribute     only "name" is read: a string, of fixed length or in a global heap "GCOL"
//
// Own code, because the library (1.10.8) reads what it finds where a file says so: of changed files
// it asked for 7 EiB of memory, or came to no end, within seconds.

#include "common/archive/hdf5_file.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/archive/hdf5_element.h"
#include "common/archive/hdf5_fields.h"
#include "common/base/printable.h"
#include "common/base/status_macros.h"

namespace shoal {
namespace {

constexpr size_t kMostObjects = 100'000;
constexpr int kMostDepth = 64;      // of groups in groups
constexpr int kMostTreeLevels = 8;  // 32 entries a node: far more than there may be objects
constexpr size_t kMostHeaderBlocks = 64;
constexpr uint64_t kMostHeaderBytes = uint64_t{1} << 20;  // of one block
constexpr uint64_t kMostHeapBytes = uint64_t{16} << 20;   // names of one group
constexpr uint64_t kMostMetadataBytes = uint64_t{256} << 20;
constexpr int kMostAxes = 32;
constexpr uint64_t kMostElements = uint64_t{1} << 40;  // of one data set

enum MessageType : uint16_t {
  kDataSpace = 0x01,
  kLinkInfo = 0x02,
  kDataType = 0x03,
  kLink = 0x06,
  kExternalFiles = 0x07,
  kLayout = 0x08,
  kAttribute = 0x0C,
  kContinuation = 0x10,
  kSymbolTable = 0x11,
};

struct Message {
  uint16_t type = 0;
  uint64_t at = 0;  // byte in the file, for messages to people
  std::string data;
};

uint64_t RoundUp8(uint64_t size) { return (size + 7) / 8 * 8; }

}  // namespace

// Reads all but the values, depth first.
class Hdf5Walk {
 public:
  explicit Hdf5Walk(Hdf5File* file) : file_(file) {}

  absl::Status Run() {
    SHOAL_ASSIGN_OR_RETURN(const uint64_t root, ReadSuperblock());
    SHOAL_RETURN_IF_ERROR(ReadObject("", root, 0));
    std::sort(file_->datasets_.begin(), file_->datasets_.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
    return absl::OkStatus();
  }

 private:
  absl::Status Damaged(uint64_t at, const std::string& what) const {
    return absl::DataLossError(absl::StrCat(file_->name(), ": damaged at byte ", at, ": ", what));
  }
  static std::string Quoted(const std::string& path) {
    return absl::StrCat("\"", path.empty() ? "/" : Printable(path, kMostNameBytes), "\"");
  }

  // A structure of the file; each byte of it is read once or twice, however the file is made.
  absl::StatusOr<std::string> Read(uint64_t at, uint64_t size, const std::string& what) {
    const uint64_t end = file_->source_.size;
    if (at > end || size > end - at)
      return Damaged(at, absl::StrCat(what, " would end behind the end of the file, byte ", end));
    metadata_bytes_ += size;
    if (metadata_bytes_ > std::min(kMostMetadataBytes, 4 * end))
      return Damaged(at, "its structures overlap, or are larger than any that Keras writes");
    std::string bytes(size, '\0');
    SHOAL_RETURN_IF_ERROR(file_->source_.read(at, bytes.data(), size));
    return bytes;
  }
  // The same, of a structure that begins with a signature.
  absl::StatusOr<std::string> ReadSigned(uint64_t at, uint64_t size, const std::string& signature) {
    SHOAL_ASSIGN_OR_RETURN(std::string bytes,
                           Read(at, size, absl::StrCat("a \"", signature, "\"")));
    if (!bytes.starts_with(signature))
      return Damaged(at, absl::StrCat("there is no \"", signature, "\""));
    return bytes;
  }

  absl::StatusOr<uint64_t> ReadSuperblock() {
    const ByteSource& source = file_->source_;
    std::string bytes(std::min<uint64_t>(source.size, 100), '\0');
    SHOAL_RETURN_IF_ERROR(source.read(0, bytes.data(), bytes.size()));
    if (!bytes.starts_with(kHdf5Signature)) {
      return absl::DataLossError(
          absl::StrCat(source.name, ": is no HDF5 file: it does not begin with the signature"));
    }
    Hdf5Fields fields(bytes);
    fields.Skip(kHdf5Signature.size());
    const uint64_t version = fields.Take(1);
    if (version > 1) {
      return absl::UnimplementedError(absl::StrCat(
          source.name, ": is HDF5 with a superblock of version ", version,
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
    if (end > source.size) {
      return absl::DataLossError(absl::StrCat(source.name, ": is cut off: it has ", source.size,
                                              " bytes and says that it has ", end));
    }
    return root;
  }

  // The object header at `at`, message by message.
  absl::StatusOr<std::vector<Message>> ReadHeader(const std::string& path, uint64_t at) {
    SHOAL_ASSIGN_OR_RETURN(const std::string prefix,
                           Read(at, 16, absl::StrCat("the header of ", Quoted(path))));
    Hdf5Fields fields(prefix);
    if (const uint64_t version = fields.Take(1); version != 1) {
      return Damaged(at, absl::StrCat("the header of ", Quoted(path),
                                      " is not of version 1, which Keras writes"));
    }
    fields.Skip(1);
    const uint64_t count = fields.Take(2);
    fields.Skip(4);
    std::vector<std::pair<uint64_t, uint64_t>> blocks = {{at + 16, fields.Take(4)}};
    std::vector<Message> messages;
    for (size_t i = 0; i < blocks.size(); ++i) {
      const auto [begin, size] = blocks[i];
      if (size > kMostHeaderBytes || blocks.size() > kMostHeaderBlocks)
        return Damaged(begin, absl::StrCat("the header of ", Quoted(path), " is too large"));
      SHOAL_ASSIGN_OR_RETURN(const std::string block,
                             Read(begin, size, absl::StrCat("the header of ", Quoted(path))));
      Hdf5Fields left(block);
      while (left.left() >= 8 && messages.size() < count) {
        Message message{.at = begin + block.size() - left.left()};
        message.type = static_cast<uint16_t>(left.Take(2));
        const uint64_t message_bytes = left.Take(2);
        left.Skip(4);
        message.data = left.TakeBytes(message_bytes);
        if (!left.ok())
          return Damaged(message.at,
                         absl::StrCat("a message of ", Quoted(path), " ends behind its header"));
        if (message.type == kContinuation) {
          Hdf5Fields block_at(message.data);
          const uint64_t offset = block_at.Take(8);
          blocks.emplace_back(offset, block_at.Take(8));
        }
        messages.push_back(std::move(message));
      }
    }
    return messages;
  }

  absl::Status ReadObject(const std::string& path, uint64_t at, int depth) {
    if (depth > kMostDepth)
      return Damaged(at, absl::StrCat(Quoted(path), " is more than ", kMostDepth, " groups deep"));
    if (!objects_.insert(at).second)
      return Damaged(at, absl::StrCat(Quoted(path), " is an object that has another name too"));
    if (objects_.size() > kMostObjects)
      return Damaged(at, absl::StrCat("it has more than ", kMostObjects, " objects"));
    SHOAL_ASSIGN_OR_RETURN(const std::vector<Message> messages, ReadHeader(path, at));
    const Message *table = nullptr, *layout = nullptr;
    for (const Message& message : messages) {
      if (message.type == kSymbolTable) table = &message;
      if (message.type == kLayout) layout = &message;
      if (message.type == kAttribute) SHOAL_RETURN_IF_ERROR(ReadAttribute(path, message));
      if (message.type == kLink || message.type == kLinkInfo) {
        return Damaged(message.at, absl::StrCat("group ", Quoted(path),
                                                " has links, which lead anywhere, or is of a "
                                                "layout that Keras does not write"));
      }
    }
    if (table != nullptr) return ReadGroup(path, *table, depth);
    if (layout != nullptr) return ReadDataset(path, messages);
    return absl::OkStatus();  // a type that has a name, for example
  }

  absl::Status ReadGroup(const std::string& path, const Message& table, int depth) {
    Hdf5Fields fields(table.data);
    const uint64_t tree = fields.Take(8), heap = fields.Take(8);
    if (!fields.ok()) return Damaged(table.at, "a symbol table of less than 16 bytes");
    SHOAL_ASSIGN_OR_RETURN(const std::string head, ReadSigned(heap, 32, "HEAP"));
    Hdf5Fields heap_fields(head);
    heap_fields.Skip(8);
    const uint64_t heap_bytes = heap_fields.Take(8);
    heap_fields.Skip(8);
    if (heap_bytes > kMostHeapBytes)
      return Damaged(heap,
                     absl::StrCat("the names in ", Quoted(path), " take ", heap_bytes, " bytes"));
    SHOAL_ASSIGN_OR_RETURN(
        const std::string names,
        Read(heap_fields.Take(8), heap_bytes, absl::StrCat("the names in ", Quoted(path))));
    return ReadTree(path, tree, names, kMostTreeLevels, depth);
  }

  absl::Status ReadTree(const std::string& path, uint64_t at, const std::string& names,
                        uint64_t level_limit, int depth) {
    SHOAL_ASSIGN_OR_RETURN(const std::string head, ReadSigned(at, 24, "TREE"));
    Hdf5Fields fields(head);
    fields.Skip(4);
    const uint64_t type = fields.Take(1), level = fields.Take(1), entries = fields.Take(2);
    if (type != 0 || level >= level_limit || entries > node_entries_)
      return Damaged(at, absl::StrCat("a node of group ", Quoted(path), " that no group has"));
    SHOAL_ASSIGN_OR_RETURN(const std::string children,
                           Read(at + 24, 8 + 16 * entries, "the entries of a \"TREE\""));
    Hdf5Fields left(children);
    for (uint64_t i = 0; i < entries; ++i) {
      left.Skip(8);  // key
      const uint64_t child = left.Take(8);
      SHOAL_RETURN_IF_ERROR(level > 0 ? ReadTree(path, child, names, level, depth)
                                      : ReadSymbols(path, child, names, depth));
    }
    return absl::OkStatus();
  }

  absl::Status ReadSymbols(const std::string& path, uint64_t at, const std::string& names,
                           int depth) {
    SHOAL_ASSIGN_OR_RETURN(const std::string head, ReadSigned(at, 8, "SNOD"));
    Hdf5Fields fields(head);
    fields.Skip(6);
    const uint64_t count = fields.Take(2);
    if (count > leaf_entries_)
      return Damaged(at, absl::StrCat("a node of group ", Quoted(path), " with ", count,
                                      " entries; there are at most ", leaf_entries_));
    SHOAL_ASSIGN_OR_RETURN(const std::string entries,
                           Read(at + 8, 40 * count, "the entries of a \"SNOD\""));
    Hdf5Fields left(entries);
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t entry_at = at + 8 + 40 * i;
      const uint64_t name_at = left.Take(8), object = left.Take(8), cached = left.Take(4);
      left.Skip(20);
      const size_t end = name_at < names.size() ? names.find('\0', name_at) : std::string::npos;
      if (end == std::string::npos || end == name_at || end - name_at > kMostNameBytes)
        return Damaged(entry_at, absl::StrCat("an entry of ", Quoted(path), " has no name"));
      const std::string name = names.substr(name_at, end - name_at);
      const std::string child = path.empty() ? name : absl::StrCat(path, "/", name);
      if (name.find('/') != std::string::npos || name == "." || name == "..")
        return Damaged(entry_at, absl::StrCat(Quoted(child), " is no name"));
      if (cached == 2)
        return Damaged(entry_at, absl::StrCat(Quoted(child), " is a link, not an object"));
      SHOAL_RETURN_IF_ERROR(ReadObject(child, object, depth + 1));
    }
    return absl::OkStatus();
  }

  absl::Status ReadDataset(const std::string& path, const std::vector<Message>& messages) {
    Hdf5File::Dataset dataset{.path = path};
    Hdf5Element type;
    bool has_space = false, has_type = false;
    const Message* layout = nullptr;
    for (const Message& message : messages) {
      if (message.type == kDataSpace) {
        SHOAL_ASSIGN_OR_RETURN(dataset.shape, ReadShape(path, message));
        has_space = true;
      } else if (message.type == kDataType) {
        type = ReadHdf5Element(message.data);
        dataset.dtype = type.dtype;
        has_type = true;
      } else if (message.type == kLayout) {
        layout = &message;
      } else if (message.type == kExternalFiles) {
        return Damaged(message.at, absl::StrCat(Quoted(path), " lies in other files"));
      }
    }
    if (!has_space || !has_type)
      return Damaged(layout->at, absl::StrCat(Quoted(path), " has no shape or no type"));
    Hdf5Fields fields(layout->data);
    const uint64_t version = fields.Take(1), kind = fields.Take(1);
    dataset.begin = fields.Take(8);
    dataset.size = fields.Take(8);
    if (version != 3 || kind != 1) {
      dataset.problem = "is stored in pieces or compressed, as Keras stores nothing";
    } else if (dataset.dtype.empty()) {
      dataset.problem = "holds no little-endian float16, float32, float64 or whole numbers";
    } else {
      SHOAL_RETURN_IF_ERROR(CheckPlace(dataset, type, layout->at));
    }
    file_->datasets_.push_back(std::move(dataset));
    return absl::OkStatus();
  }

  absl::Status CheckPlace(const Hdf5File::Dataset& dataset, const Hdf5Element& type, uint64_t at) {
    const auto elements = static_cast<uint64_t>(ElementCount(dataset.shape));
    if (dataset.size != elements * type.size) {
      return Damaged(at, absl::StrCat(Quoted(dataset.path), " takes ", dataset.size, " bytes; ",
                                      type.dtype, " of shape ", ShapeToString(dataset.shape),
                                      " takes ", elements * type.size));
    }
    if (dataset.size == 0) return absl::OkStatus();
    const uint64_t end = file_->source_.size;
    if (dataset.begin == kHdf5Nowhere)
      return Damaged(at, absl::StrCat(Quoted(dataset.path), " has a shape and no values"));
    if (dataset.begin > end || dataset.size > end - dataset.begin)
      return Damaged(
          at, absl::StrCat(Quoted(dataset.path), " would lie at byte ", dataset.begin, " to ",
                           dataset.begin + dataset.size, ", and the file ends at ", end));
    return absl::OkStatus();
  }

  absl::StatusOr<Shape> ReadShape(const std::string& path, const Message& message) {
    Hdf5Fields fields(message.data);
    const uint64_t version = fields.Take(1), axes = fields.Take(1);
    fields.Skip(version == 1 ? 6 : 2);
    if (version < 1 || version > 2 || axes > kMostAxes)
      return Damaged(message.at, absl::StrCat(Quoted(path), " has a shape that cannot be read"));
    Shape shape;
    uint64_t elements = 1;
    for (uint64_t i = 0; i < axes; ++i) {
      const uint64_t extent = fields.Take(8);
      if (extent > kMostElements || (extent > 0 && elements > kMostElements / extent))
        return Damaged(message.at,
                       absl::StrCat(Quoted(path), " has more than ", kMostElements, " elements"));
      if (extent > 0) elements *= extent;
      shape.push_back(static_cast<int64_t>(extent));
    }
    if (!fields.ok())
      return Damaged(message.at, absl::StrCat(Quoted(path), " has a shape that ends early"));
    return shape;
  }

  // Those that are called "name" are kept, if they are a string.
  absl::Status ReadAttribute(const std::string& path, const Message& message) {
    Hdf5Fields fields(message.data);
    const uint64_t version = fields.Take(1);
    fields.Skip(1);
    const uint64_t name_bytes = fields.Take(2), type_bytes = fields.Take(2),
                   space_bytes = fields.Take(2);
    if (version == 3) fields.Skip(1);
    const auto padded = [version](uint64_t size) { return version == 1 ? RoundUp8(size) : size; };
    std::string_view name = fields.TakeBytes(padded(name_bytes));
    name = name.substr(0, name.find('\0'));
    Hdf5Fields type(fields.TakeBytes(padded(type_bytes)));
    fields.Skip(padded(space_bytes));
    if (!fields.ok() || version < 1 || version > 3)
      return Damaged(message.at, absl::StrCat("an attribute of ", Quoted(path), " ends early"));
    if (name != "name") return absl::OkStatus();
    const uint64_t type_class = type.Take(1) & 0x0F;
    const bool variable_string = type_class == 9 && (type.Take(3) & 0x0F) == 1;
    if (type_class == 3) {
      const std::string_view text = fields.TakeBytes(fields.left());
      file_->names_[path] = text.substr(0, text.find('\0'));
      return absl::OkStatus();
    }
    if (!variable_string) return absl::OkStatus();
    const uint64_t size = fields.Take(4), heap = fields.Take(8), index = fields.Take(4);
    SHOAL_ASSIGN_OR_RETURN(const std::string* text, FindInHeap(heap, index));
    if (!fields.ok() || text == nullptr || text->size() < size || size > kMostNameBytes)
      return Damaged(message.at, absl::StrCat("the name of ", Quoted(path), " is not there"));
    file_->names_[path] = text->substr(0, size);
    return absl::OkStatus();
  }

  // An object of the global heap at `at`; null: there is none of this number.
  absl::StatusOr<const std::string*> FindInHeap(uint64_t at, uint64_t index) {
    auto heap = heaps_.find(at);
    if (heap == heaps_.end()) {
      SHOAL_ASSIGN_OR_RETURN(const std::string head, ReadSigned(at, 16, "GCOL"));
      Hdf5Fields fields(head);
      fields.Skip(8);
      const uint64_t size = fields.Take(8);
      if (size < 16 || size > kMostHeapBytes) return Damaged(at, "a \"GCOL\" of no such size");
      SHOAL_ASSIGN_OR_RETURN(const std::string bytes, Read(at + 16, size - 16, "a \"GCOL\""));
      heap = heaps_.emplace(at, std::map<uint64_t, std::string>()).first;
      Hdf5Fields left(bytes);
      while (left.left() >= 16) {
        const uint64_t number = left.Take(2);
        left.Skip(6);
        const uint64_t object_bytes = left.Take(8);
        if (number == 0) break;  // the room that is left
        const std::string_view object = left.TakeBytes(object_bytes);
        if (!left.ok()) return Damaged(at, "an object of a \"GCOL\" ends behind it");
        left.Skip(std::min<uint64_t>(RoundUp8(object_bytes) - object_bytes, left.left()));
        heap->second[number] = object;
      }
    }
    const auto found = heap->second.find(index);
    return found == heap->second.end() ? nullptr : &found->second;
  }

  Hdf5File* const file_;
  uint64_t leaf_entries_ = 0;  // most of a "SNOD"
  uint64_t node_entries_ = 0;  // and of a "TREE"
  uint64_t metadata_bytes_ = 0;
  std::set<uint64_t> objects_;  // addresses
  std::map<uint64_t, std::map<uint64_t, std::string>> heaps_;
};

absl::StatusOr<std::unique_ptr<Hdf5File>> Hdf5File::Open(ByteSource source) {
  std::unique_ptr<Hdf5File> file(new Hdf5File(std::move(source)));
  SHOAL_RETURN_IF_ERROR(Hdf5Walk(file.get()).Run());
  return file;
}

absl::Status Hdf5File::ReadFloats(const Dataset& dataset, uint64_t first,
                                  std::span<float> out) const {
  if (!dataset.problem.empty())
    return absl::UnimplementedError(absl::StrCat(
        name(), ": \"", Printable(dataset.path, kMostNameBytes), "\" ", dataset.problem));
  const auto elements = static_cast<uint64_t>(ElementCount(dataset.shape));
  if (first > elements || out.size() > elements - first) {
    return absl::InvalidArgumentError(absl::StrCat(name(), ": \"", dataset.path, "\" has ",
                                                   elements, " values; ", out.size(),
                                                   " from number ", first, " are beyond it"));
  }
  if (out.empty()) return absl::OkStatus();
  const uint64_t element_bytes = dataset.size / elements;
  if (dataset.dtype == "F32")
    return source_.read(dataset.begin + first * element_bytes, out.data(), out.size_bytes());
  std::vector<char> piece(std::min<size_t>(out.size(), 65536) * element_bytes);
  for (size_t done = 0; done < out.size();) {
    const size_t count = std::min(out.size() - done, piece.size() / element_bytes);
    SHOAL_RETURN_IF_ERROR(source_.read(dataset.begin + (first + done) * element_bytes, piece.data(),
                                       count * element_bytes));
    for (size_t i = 0; i < count; ++i)
      out[done + i] = Hdf5ToFloat(dataset.dtype, piece.data() + i * element_bytes);
    done += count;
  }
  return absl::OkStatus();
}

}  // namespace shoal
