#include "tests/simulation/simulated/simulated_disk.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace shoal {

struct SimulatedDisk::Node {
  struct Write {  // or, without data, a new size
    uint64_t offset = 0;
    std::string data;
    bool resize = false;
  };
  struct Change {  // of a directory: the names that changed together, and what they lead to now
    std::vector<std::pair<std::string, NodePtr>> entries;  // null: removed
  };

  bool is_directory = false;
  std::string content;
  std::string durable;
  std::vector<Write> writes;  // since the last sync
  std::map<std::string, NodePtr> entries;
  std::map<std::string, NodePtr> durable_entries;
  std::vector<Change> changes;

  void Apply(const Write& write, uint64_t size, std::string* to) const {
    if (write.resize) {
      to->resize(write.offset);
      return;
    }
    if (size == 0) return;
    if (to->size() < write.offset + size) to->resize(write.offset + size);
    std::memcpy(to->data() + write.offset, write.data.data(), size);
  }
  void Set(std::vector<std::pair<std::string, NodePtr>> changed) {
    for (const auto& [name, node] : changed) Set(name, node, &entries);
    changes.push_back({std::move(changed)});
  }
  static void Set(const std::string& name, const NodePtr& node,
                  std::map<std::string, NodePtr>* entries) {
    if (node == nullptr) {
      entries->erase(name);
    } else {
      (*entries)[name] = node;
    }
  }
};

class SimulatedDisk::OpenFile : public File {
 public:
  OpenFile(std::string path, NodePtr node) : File(std::move(path)), node_(std::move(node)) {}

  absl::StatusOr<uint64_t> Size() const override { return node_->content.size(); }
  absl::Status ReadAt(uint64_t offset, void* out, uint64_t size) const override {
    if (offset + size > node_->content.size()) {
      return absl::DataLossError(absl::StrCat(path(), " ends at byte ", node_->content.size()));
    }
    std::memcpy(out, node_->content.data() + offset, size);
    return absl::OkStatus();
  }
  absl::Status WriteAt(uint64_t offset, const void* data, uint64_t size) const override {
    return Add({offset, std::string(static_cast<const char*>(data), size), false});
  }
  absl::Status Allocate(uint64_t size) const override { return Add({size, "", true}); }
  absl::Status Sync() const override {
    node_->durable = node_->content;
    node_->writes.clear();
    return absl::OkStatus();
  }

 private:
  absl::Status Add(Node::Write write) const {
    node_->Apply(write, write.data.size(), &node_->content);
    node_->writes.push_back(std::move(write));
    return absl::OkStatus();
  }
  const NodePtr node_;
};

SimulatedDisk::SimulatedDisk() : root_(std::make_shared<Node>()) { root_->is_directory = true; }

SimulatedDisk::~SimulatedDisk() = default;

SimulatedDisk::NodePtr SimulatedDisk::Find(const std::string& path) const {
  NodePtr node = root_;
  for (const auto& part : absl::StrSplit(path, '/', absl::SkipEmpty())) {
    auto entry = node->entries.find(std::string(part));
    if (entry == node->entries.end()) return nullptr;
    node = entry->second;
  }
  return node;
}

SimulatedDisk::NodePtr SimulatedDisk::ParentOf(const std::string& path, std::string* name) const {
  const size_t slash = path.rfind('/');
  *name = path.substr(slash + 1);
  NodePtr parent = Find(path.substr(0, slash));
  return parent != nullptr && parent->is_directory ? parent : nullptr;
}

absl::StatusOr<std::unique_ptr<File>> SimulatedDisk::Open(const std::string& path, Mode mode) {
  std::string name;
  const NodePtr parent = ParentOf(path, &name);
  if (parent == nullptr) return FileError(ENOENT, "open", path);
  NodePtr node = Find(path);
  if (mode == Mode::kCreate) {
    if (node != nullptr) return FileError(EEXIST, "create", path);
    node = std::make_shared<Node>();
    parent->Set({{name, node}});
  }
  if (node == nullptr) return FileError(ENOENT, "open", path);
  if (node->is_directory) return FileError(EISDIR, "open", path);
  return std::make_unique<OpenFile>(path, node);
}

bool SimulatedDisk::Exists(const std::string& path) { return Find(path) != nullptr; }

bool SimulatedDisk::IsDirectory(const std::string& path) {
  const NodePtr node = Find(path);
  return node != nullptr && node->is_directory;
}

absl::StatusOr<std::vector<FileSystem::Entry>> SimulatedDisk::List(const std::string& directory) {
  const NodePtr node = Find(directory);
  if (node == nullptr) return FileError(ENOENT, "list", directory);
  if (!node->is_directory) return FileError(ENOTDIR, "list", directory);
  std::vector<Entry> entries;
  for (const auto& [name, entry] : node->entries) entries.push_back({name, entry->is_directory});
  return entries;
}

absl::Status SimulatedDisk::MakeDirectory(const std::string& path) {
  std::string name;
  const NodePtr parent = ParentOf(path, &name);
  if (parent == nullptr) return FileError(ENOENT, "create directory", path);
  if (parent->entries.contains(name)) return FileError(EEXIST, "create directory", path);
  auto node = std::make_shared<Node>();
  node->is_directory = true;
  parent->Set({{name, node}});
  return absl::OkStatus();
}

absl::Status SimulatedDisk::Rename(const std::string& from, const std::string& to) {
  std::string from_name, to_name;
  const NodePtr from_parent = ParentOf(from, &from_name);
  const NodePtr to_parent = ParentOf(to, &to_name);
  const NodePtr node = Find(from);
  // Everything here is renamed inside its directory.
  if (node == nullptr || from_parent != to_parent) return FileError(ENOENT, "rename", from);
  const NodePtr there = Find(to);
  if (there != nullptr && !there->entries.empty()) return FileError(ENOTEMPTY, "rename to", to);
  from_parent->Set({{from_name, nullptr}, {to_name, node}});
  if (on_renamed != nullptr) on_renamed(to);
  return absl::OkStatus();
}

absl::Status SimulatedDisk::Exchange(const std::string& a, const std::string& b) {
  std::string a_name, b_name;
  const NodePtr parent = ParentOf(a, &a_name);
  const NodePtr a_node = Find(a), b_node = Find(b);
  if (a_node == nullptr || b_node == nullptr || parent != ParentOf(b, &b_name)) {
    return FileError(ENOENT, "exchange", a);
  }
  parent->Set({{a_name, b_node}, {b_name, a_node}});
  return absl::OkStatus();
}

absl::Status SimulatedDisk::RemoveFile(const std::string& path) {
  std::string name;
  const NodePtr parent = ParentOf(path, &name);
  const NodePtr node = Find(path);
  if (node == nullptr) return FileError(ENOENT, "remove", path);
  if (node->is_directory) return FileError(EISDIR, "remove", path);
  parent->Set({{name, nullptr}});
  return absl::OkStatus();
}

absl::Status SimulatedDisk::RemoveTree(const std::string& directory) {
  const NodePtr node = Find(directory);
  if (node == nullptr) return absl::OkStatus();
  while (!node->entries.empty()) {
    const std::string below = absl::StrCat(directory, "/", node->entries.begin()->first);
    if (const absl::Status removed = RemoveTree(below); !removed.ok()) return removed;
  }
  std::string name;
  ParentOf(directory, &name)->Set({{name, nullptr}});
  return absl::OkStatus();
}

absl::Status SimulatedDisk::SyncDirectory(const std::string& directory) {
  const NodePtr node = Find(directory);
  if (node == nullptr) return FileError(ENOENT, "open", directory);
  node->durable_entries = node->entries;
  node->changes.clear();
  return absl::OkStatus();
}

void SimulatedDisk::LosePower(Random* random) { LosePower(root_, random); }

void SimulatedDisk::LosePower(const NodePtr& node, Random* random) {
  // Some losses are of everything, some of nothing, most of something.
  const uint64_t kept_of_8 = random->Below(9);
  for (const Node::Write& write : node->writes) {
    if (random->Below(8) >= kept_of_8) continue;
    const uint64_t size = random->Coin() ? write.data.size() : random->Below(write.data.size() + 1);
    node->Apply(write, size, &node->durable);
  }
  for (const Node::Change& change : node->changes) {
    if (random->Below(8) >= kept_of_8) continue;
    for (const auto& [name, entry] : change.entries) Node::Set(name, entry, &node->durable_entries);
  }
  node->writes.clear();
  node->changes.clear();
  node->content = node->durable;
  node->entries = node->durable_entries;
  for (const auto& [name, entry] : node->entries) LosePower(entry, random);
}

bool SimulatedDisk::Damage(const std::string& path, Random* random) {
  const NodePtr node = Find(path);
  if (node == nullptr || node->content.empty()) return false;
  const size_t at = random->Below(node->content.size());
  const char flipped = static_cast<char>(1 << random->Below(8));
  node->content[at] ^= flipped;
  if (at < node->durable.size()) node->durable[at] = node->content[at];
  return true;
}

}  // namespace shoal
