// Reads HDF5 (https://docs.hdfgroup.org/hdf5/develop/_f_m_t3.html). Supports the part that h5py,
// and so Keras, writes by default:
//
//   superblock    version 0 or 1, at byte 0; 8-byte offsets and lengths
//   group         object header 1 with a symbol table: a "TREE" of version-1 nodes, whose leaves
//                 are "SNOD"s of entries (name, address of an object); names lie in a "HEAP"
//   data set      object header 1 with data space, data type and layout 3, contiguous
//   attribute     only "name" is read: a string, of fixed length or in a global heap "GCOL"
//
// Shoal does not use the HDF5 library (1.10.8), because that trusts the addresses and sizes in a
// file. With modified files, it soon asked for 7 EiB of memory or did not end.

#include "common/archive/hdf5_file.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/archive/hdf5_element.h"
#include "common/archive/hdf5_fields.h"
#include "common/archive/hdf5_structures.h"
#include "common/base/status_macros.h"
#include "common/base/text/printable.h"

namespace shoal {
namespace {

constexpr size_t kMaxObjects = 100'000;
constexpr int kMaxDepth = 64;      // of nested groups
constexpr int kMaxTreeLevels = 8;  // at 32 entries per node, far more than kMaxObjects
constexpr int kMaxAxes = 32;
constexpr uint64_t kMaxElements = uint64_t{1} << 40;  // in one data set

}  // namespace

// Reads everything but the values, depth first.
class Hdf5Walk {
 public:
  explicit Hdf5Walk(Hdf5File* file) : file_(file), structures_(file->source_) {}

  absl::Status Run() {
    SHOAL_ASSIGN_OR_RETURN(const uint64_t root, structures_.ReadSuperblock());
    SHOAL_RETURN_IF_ERROR(ReadObject("", root, 0));
    std::sort(file_->datasets_.begin(), file_->datasets_.end(),
              [](const auto& a, const auto& b) { return a.path < b.path; });
    return absl::OkStatus();
  }

 private:
  absl::Status ReadObject(const std::string& path, uint64_t at, int depth) {
    if (depth > kMaxDepth)
      return structures_.Damaged(
          at, absl::StrCat(QuotedHdf5Path(path), " is more than ", kMaxDepth, " groups deep"));
    if (!objects_.insert(at).second)
      return structures_.Damaged(
          at, absl::StrCat(QuotedHdf5Path(path), " is a second name of one object"));
    if (objects_.size() > kMaxObjects)
      return structures_.Damaged(at, absl::StrCat("it has more than ", kMaxObjects, " objects"));
    SHOAL_ASSIGN_OR_RETURN(const std::vector<Hdf5Message> messages,
                           structures_.ReadHeader(path, at));
    const Hdf5Message *table = nullptr, *layout = nullptr;
    for (const Hdf5Message& message : messages) {
      if (message.type == Hdf5Message::kSymbolTable) table = &message;
      if (message.type == Hdf5Message::kLayout) layout = &message;
      if (message.type == Hdf5Message::kAttribute)
        SHOAL_RETURN_IF_ERROR(ReadAttribute(path, message));
      if (message.type == Hdf5Message::kLink || message.type == Hdf5Message::kLinkInfo) {
        return structures_.Damaged(
            message.at, absl::StrCat("group ", QuotedHdf5Path(path),
                                     " has links, or a layout that Keras does not write"));
      }
    }
    if (table != nullptr) return ReadGroup(path, *table, depth);
    if (layout != nullptr) return ReadDataset(path, messages);
    return absl::OkStatus();  // for example a named type
  }

  absl::Status ReadGroup(const std::string& path, const Hdf5Message& table, int depth) {
    Hdf5Fields fields(table.data);
    const uint64_t tree = fields.Take(8), heap = fields.Take(8);
    if (!fields.ok()) return structures_.Damaged(table.at, "a symbol table of less than 16 bytes");
    SHOAL_ASSIGN_OR_RETURN(const std::string head, structures_.ReadSigned(heap, 32, "HEAP"));
    Hdf5Fields heap_fields(head);
    heap_fields.Skip(8);
    const uint64_t heap_bytes = heap_fields.Take(8);
    heap_fields.Skip(8);
    if (heap_bytes > kMaxHdf5HeapBytes)
      return structures_.Damaged(heap, absl::StrCat("the names in ", QuotedHdf5Path(path), " take ",
                                                    heap_bytes, " bytes"));
    SHOAL_ASSIGN_OR_RETURN(const std::string names,
                           structures_.Read(heap_fields.Take(8), heap_bytes,
                                            absl::StrCat("the names in ", QuotedHdf5Path(path))));
    return ReadTree(path, tree, names, kMaxTreeLevels, depth);
  }

  absl::Status ReadTree(const std::string& path, uint64_t at, const std::string& names,
                        uint64_t level_limit, int depth) {
    SHOAL_ASSIGN_OR_RETURN(const std::string head, structures_.ReadSigned(at, 24, "TREE"));
    Hdf5Fields fields(head);
    fields.Skip(4);
    const uint64_t type = fields.Take(1), level = fields.Take(1), entries = fields.Take(2);
    if (type != 0 || level >= level_limit || entries > structures_.node_entries())
      return structures_.Damaged(
          at, absl::StrCat("group ", QuotedHdf5Path(path), " has an invalid node"));
    SHOAL_ASSIGN_OR_RETURN(
        const std::string children,
        structures_.Read(at + 24, 8 + 16 * entries, "the entries of a \"TREE\""));
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
    SHOAL_ASSIGN_OR_RETURN(const std::string head, structures_.ReadSigned(at, 8, "SNOD"));
    Hdf5Fields fields(head);
    fields.Skip(6);
    const uint64_t count = fields.Take(2);
    if (count > structures_.leaf_entries())
      return structures_.Damaged(
          at, absl::StrCat("a node of group ", QuotedHdf5Path(path), " with ", count,
                           " entries; there are at most ", structures_.leaf_entries()));
    SHOAL_ASSIGN_OR_RETURN(const std::string entries,
                           structures_.Read(at + 8, 40 * count, "the entries of a \"SNOD\""));
    Hdf5Fields left(entries);
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t entry_at = at + 8 + 40 * i;
      const uint64_t name_at = left.Take(8), object = left.Take(8), cached = left.Take(4);
      left.Skip(20);
      const size_t end = name_at < names.size() ? names.find('\0', name_at) : std::string::npos;
      if (end == std::string::npos || end == name_at || end - name_at > kMaxNameBytes)
        return structures_.Damaged(
            entry_at, absl::StrCat("an entry of ", QuotedHdf5Path(path), " has no name"));
      const std::string name = names.substr(name_at, end - name_at);
      const std::string child = path.empty() ? name : absl::StrCat(path, "/", name);
      if (name.find('/') != std::string::npos || name == "." || name == "..")
        return structures_.Damaged(entry_at,
                                   absl::StrCat(QuotedHdf5Path(child), " is not a valid name"));
      if (cached == 2)
        return structures_.Damaged(
            entry_at, absl::StrCat(QuotedHdf5Path(child), " is a link, not an object"));
      SHOAL_RETURN_IF_ERROR(ReadObject(child, object, depth + 1));
    }
    return absl::OkStatus();
  }

  absl::Status ReadDataset(const std::string& path, const std::vector<Hdf5Message>& messages) {
    Hdf5File::Dataset dataset{.path = path};
    Hdf5Element type;
    bool has_space = false, has_type = false;
    const Hdf5Message* layout = nullptr;
    for (const Hdf5Message& message : messages) {
      if (message.type == Hdf5Message::kDataSpace) {
        SHOAL_ASSIGN_OR_RETURN(dataset.shape, ReadShape(path, message));
        has_space = true;
      } else if (message.type == Hdf5Message::kDataType) {
        type = ReadHdf5Element(message.data);
        dataset.dtype = type.dtype;
        has_type = true;
      } else if (message.type == Hdf5Message::kLayout) {
        layout = &message;
      } else if (message.type == Hdf5Message::kExternalFiles) {
        return structures_.Damaged(message.at,
                                   absl::StrCat(QuotedHdf5Path(path), " lies in other files"));
      }
    }
    if (!has_space || !has_type)
      return structures_.Damaged(layout->at,
                                 absl::StrCat(QuotedHdf5Path(path), " has no shape or no type"));
    Hdf5Fields fields(layout->data);
    const uint64_t version = fields.Take(1), kind = fields.Take(1);
    dataset.begin = fields.Take(8);
    dataset.size = fields.Take(8);
    if (version != 3 || kind != 1) {
      dataset.problem = "is chunked or compressed; Keras stores data sets whole";
    } else if (dataset.dtype.empty()) {
      dataset.problem =
          "has an unknown type; expected little-endian float16, float32, float64 or integers";
    } else {
      SHOAL_RETURN_IF_ERROR(CheckPlace(dataset, type, layout->at));
    }
    file_->datasets_.push_back(std::move(dataset));
    return absl::OkStatus();
  }

  absl::Status CheckPlace(const Hdf5File::Dataset& dataset, const Hdf5Element& type, uint64_t at) {
    const auto elements = static_cast<uint64_t>(ElementCount(dataset.shape));
    if (dataset.size != elements * type.size) {
      return structures_.Damaged(
          at, absl::StrCat(QuotedHdf5Path(dataset.path), " takes ", dataset.size, " bytes; ",
                           type.dtype, " of shape ", ShapeToString(dataset.shape), " takes ",
                           elements * type.size));
    }
    if (dataset.size == 0) return absl::OkStatus();
    const uint64_t end = file_->source_.size;
    if (dataset.begin == kHdf5Nowhere)
      return structures_.Damaged(
          at, absl::StrCat(QuotedHdf5Path(dataset.path), " has a shape but no values"));
    if (dataset.begin > end || dataset.size > end - dataset.begin)
      return structures_.Damaged(
          at, absl::StrCat(QuotedHdf5Path(dataset.path), " lies at bytes ", dataset.begin, " to ",
                           dataset.begin + dataset.size, "; the file ends at ", end));
    return absl::OkStatus();
  }

  absl::StatusOr<Shape> ReadShape(const std::string& path, const Hdf5Message& message) {
    Hdf5Fields fields(message.data);
    const uint64_t version = fields.Take(1), axes = fields.Take(1);
    fields.Skip(version == 1 ? 6 : 2);
    if (version < 1 || version > 2 || axes > kMaxAxes)
      return structures_.Damaged(
          message.at, absl::StrCat(QuotedHdf5Path(path), " has a shape that cannot be read"));
    Shape shape;
    uint64_t elements = 1;
    for (uint64_t i = 0; i < axes; ++i) {
      const uint64_t extent = fields.Take(8);
      if (extent > kMaxElements || (extent > 0 && elements > kMaxElements / extent))
        return structures_.Damaged(message.at, absl::StrCat(QuotedHdf5Path(path), " has more than ",
                                                            kMaxElements, " elements"));
      if (extent > 0) elements *= extent;
      shape.push_back(static_cast<int64_t>(extent));
    }
    if (!fields.ok())
      return structures_.Damaged(
          message.at, absl::StrCat(QuotedHdf5Path(path), " has a shape that ends early"));
    return shape;
  }

  // Keeps the attribute "name" if it is a string. Ignores all others.
  absl::Status ReadAttribute(const std::string& path, const Hdf5Message& message) {
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
      return structures_.Damaged(
          message.at, absl::StrCat("an attribute of ", QuotedHdf5Path(path), " ends early"));
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
    SHOAL_ASSIGN_OR_RETURN(const std::string* text, structures_.FindInHeap(heap, index));
    if (!fields.ok() || text == nullptr || text->size() < size || size > kMaxNameBytes)
      return structures_.Damaged(message.at,
                                 absl::StrCat(QuotedHdf5Path(path), " has no readable name"));
    file_->names_[path] = text->substr(0, size);
    return absl::OkStatus();
  }

  Hdf5File* const file_;
  Hdf5Structures structures_;
  std::set<uint64_t> objects_;  // addresses
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
        name(), ": \"", Printable(dataset.path, kMaxNameBytes), "\" ", dataset.problem));
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
