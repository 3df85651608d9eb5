// Writes the oldest form of HDF5, which every version of the library reads. hdf5_file.cc describes
// it.

#include "common/archive/hdf5_layout.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/strings/str_split.h"
#include "common/archive/hdf5_fields.h"
#include "common/base/check.h"

namespace shoal {
namespace {

constexpr uint64_t kSuperblockBytes = 96;
// Entries of a "SNOD" and of a node of a "TREE". The superblock stores half of each.
constexpr size_t kLeafEntries = 32;
constexpr size_t kNodeEntries = 32;
constexpr uint64_t kNodeBytes = 24 + 8 * (2 * kNodeEntries + 1);

struct Node {
  std::map<std::string, std::unique_ptr<Node>> children;
  int dataset = -1;  // index; -1: a group
};

// A buffer to which bytes are appended. Each structure begins at a multiple of 8.
class Bytes {
 public:
  uint64_t size() const { return text_.size(); }
  void Put(uint64_t value, int size) {
    for (int i = 0; i < size; ++i) text_ += static_cast<char>(value >> 8 * i & 0xFF);
  }
  void Put(std::string_view text) { text_ += text; }
  void Zeros(uint64_t count) { text_.append(count, '\0'); }
  void Align() { Zeros((8 - size() % 8) % 8); }
  void Replace(uint64_t at, uint64_t value) {
    Bytes bytes;
    bytes.Put(value, 8);
    text_.replace(at, 8, bytes.text_);
  }
  std::string& text() { return text_; }

 private:
  std::string text_;
};

// An object's address and the other fields of its entry in its group.
struct Placed {
  uint64_t header = 0;
  bool is_group = false;
  uint64_t tree = 0, heap = 0;  // for a group
};

class Writer {
 public:
  explicit Writer(const std::vector<std::pair<std::string, Shape>>& datasets)
      : datasets_(datasets), address_at_(datasets.size()) {
    for (size_t i = 0; i < datasets.size(); ++i) {
      Node* node = &root_;
      const std::vector<std::string> parts = absl::StrSplit(datasets[i].first, '/');
      for (const std::string& part : parts) {
        std::unique_ptr<Node>& child = node->children[part];
        if (child == nullptr) child = std::make_unique<Node>();
        node = child.get();
        SHOAL_CHECK(node->dataset < 0);
      }
      SHOAL_CHECK(node->children.empty());
      node->dataset = static_cast<int>(i);
    }
  }

  Hdf5Layout Write() {
    out_.Zeros(kSuperblockBytes);
    const Placed root = WriteNode(root_);
    out_.Align();
    Hdf5Layout layout;
    uint64_t end = out_.size();
    for (size_t i = 0; i < datasets_.size(); ++i) {
      layout.begins.push_back(end);
      out_.Replace(address_at_[i], end);
      end += SizeOf(i);
    }
    layout.file_size = end;
    layout.header = std::move(out_.text());
    layout.header.replace(0, kSuperblockBytes, Superblock(root, end));
    return layout;
  }

 private:
  uint64_t SizeOf(size_t dataset) const {
    return static_cast<uint64_t>(ElementCount(datasets_[dataset].second)) * sizeof(float);
  }

  static std::string Superblock(const Placed& root, uint64_t end) {
    Bytes out;
    out.Put(kHdf5Signature);
    out.Zeros(5);  // versions
    out.Put(8, 1);
    out.Put(8, 1);
    out.Zeros(1);
    out.Put(kLeafEntries / 2, 2);
    out.Put(kNodeEntries / 2, 2);
    out.Zeros(4);
    out.Put(0, 8);
    out.Put(kHdf5Nowhere, 8);
    out.Put(end, 8);
    out.Put(kHdf5Nowhere, 8);
    PutEntry(&out, 0, root);
    return out.text();
  }

  static void PutEntry(Bytes* out, uint64_t name_at, const Placed& object) {
    out->Put(name_at, 8);
    out->Put(object.header, 8);
    out->Put(object.is_group ? 1 : 0, 4);
    out->Zeros(4);
    out->Put(object.tree, 8);
    out->Put(object.heap, 8);
  }

  // Writes children first, because a group contains their addresses.
  Placed WriteNode(const Node& node) {
    if (node.dataset >= 0) return {.header = WriteDataset(node.dataset)};
    std::vector<Placed> children;
    for (const auto& [name, child] : node.children) children.push_back(WriteNode(*child));
    return WriteGroup(node, children);
  }

  uint64_t BeginHeader(int messages, uint64_t size) {
    out_.Align();
    const uint64_t at = out_.size();
    out_.Put(1, 2);  // version
    out_.Put(messages, 2);
    out_.Put(1, 4);  // references
    out_.Put(size, 4);
    out_.Zeros(4);
    return at;
  }
  void BeginMessage(uint64_t type, uint64_t size) {
    out_.Put(type, 2);
    out_.Put(size, 2);
    out_.Zeros(4);
  }

  uint64_t WriteDataset(int index) {
    const Shape& shape = datasets_[index].second;
    const uint64_t space_bytes = 8 + 8 * shape.size();
    constexpr uint64_t kTypeBytes = 24, kLayoutBytes = 24;
    const uint64_t at = BeginHeader(3, 3 * 8 + space_bytes + kTypeBytes + kLayoutBytes);
    BeginMessage(0x01, space_bytes);
    out_.Put(1, 1);
    out_.Put(shape.size(), 1);
    out_.Zeros(6);
    for (const int64_t extent : shape) out_.Put(static_cast<uint64_t>(extent), 8);
    BeginMessage(0x03, kTypeBytes);
    out_.Put(0x11, 1);         // version 1, a float
    out_.Put(0x1F20, 3);       // little-endian, leading 1 implied, sign in bit 31
    out_.Put(4, 4);            // bytes
    out_.Put(32ULL << 16, 4);  // offset, bits
    out_.Put(23, 1);           // exponent
    out_.Put(8, 1);
    out_.Put(0, 1);  // mantissa
    out_.Put(23, 1);
    out_.Put(127, 4);  // bias
    out_.Zeros(4);
    BeginMessage(0x08, kLayoutBytes);
    out_.Put(3, 1);
    out_.Put(1, 1);  // contiguous
    address_at_[index] = out_.size();
    out_.Zeros(8);
    out_.Put(SizeOf(index), 8);
    out_.Zeros(6);
    return at;
  }

  Placed WriteGroup(const Node& node, const std::vector<Placed>& children) {
    out_.Align();
    Bytes names;
    names.Zeros(8);  // the empty name
    std::vector<uint64_t> name_at;
    for (const auto& [name, child] : node.children) {
      name_at.push_back(names.size());
      names.Put(name);
      names.Zeros(1);
      names.Align();
    }
    Placed group{.is_group = true, .heap = out_.size()};
    out_.Put("HEAP");
    out_.Zeros(4);
    out_.Put(names.size(), 8);
    out_.Put(1, 8);  // no free block
    out_.Put(out_.size() + 8, 8);
    out_.Put(names.text());
    group.tree = WriteTree(children, name_at);
    group.header = BeginHeader(1, 24);
    BeginMessage(0x11, 16);
    out_.Put(group.tree, 8);
    out_.Put(group.heap, 8);
    return group;
  }

  // A node or leaf of the tree: its address and the offset of its last entry's name.
  struct Branch {
    uint64_t at = 0;
    uint64_t last_name_at = 0;
  };

  uint64_t WriteTree(const std::vector<Placed>& children, const std::vector<uint64_t>& name_at) {
    std::vector<Branch> branches;
    for (size_t begin = 0; begin < children.size(); begin += kLeafEntries) {
      const size_t end = std::min(children.size(), begin + kLeafEntries);
      branches.push_back({out_.size(), name_at[end - 1]});
      out_.Put("SNOD");
      out_.Put(1, 2);
      out_.Put(end - begin, 2);
      for (size_t i = begin; i < end; ++i) PutEntry(&out_, name_at[i], children[i]);
      out_.Zeros(40 * (kLeafEntries - (end - begin)));
    }
    for (int level = 0;; ++level) {
      std::vector<Branch> above;
      for (size_t begin = 0; begin == 0 || begin < branches.size(); begin += kNodeEntries) {
        const size_t end = std::min(branches.size(), begin + kNodeEntries);
        const uint64_t first_key = begin == 0 ? 0 : branches[begin - 1].last_name_at;
        above.push_back({out_.size(), end > 0 ? branches[end - 1].last_name_at : 0});
        WriteTreeNode(level,
                      {.left = begin == 0 ? kHdf5Nowhere : out_.size() - kNodeBytes,
                       .right = end == branches.size() ? kHdf5Nowhere : out_.size() + kNodeBytes},
                      first_key, {branches.begin() + begin, branches.begin() + end});
      }
      if (above.size() == 1) return above[0].at;
      branches = std::move(above);
    }
  }

  struct Siblings {
    uint64_t left = 0;
    uint64_t right = 0;
  };

  void WriteTreeNode(int level, const Siblings& siblings, uint64_t first_key,
                     const std::vector<Branch>& branches) {
    out_.Put("TREE");
    out_.Put(0, 1);
    out_.Put(level, 1);
    out_.Put(branches.size(), 2);
    out_.Put(siblings.left, 8);
    out_.Put(siblings.right, 8);
    out_.Put(first_key, 8);
    for (const Branch& branch : branches) {
      out_.Put(branch.at, 8);
      out_.Put(branch.last_name_at, 8);
    }
    out_.Zeros(16 * (kNodeEntries - branches.size()));
  }

  const std::vector<std::pair<std::string, Shape>>& datasets_;
  Node root_;
  Bytes out_;
  std::vector<uint64_t> address_at_;  // by data set: offset of the values' address in its header
};

}  // namespace

Hdf5Layout LayOutHdf5(const std::vector<std::pair<std::string, Shape>>& datasets) {
  return Writer(datasets).Write();
}

}  // namespace shoal
