#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/archive/byte_source.h"

namespace shoal {

// The names in one group, or in one global heap, in bytes.
inline constexpr uint64_t kMostHdf5HeapBytes = uint64_t{16} << 20;

// What object headers are made of.
struct Hdf5Message {
  enum Type : uint16_t {
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
  uint16_t type = 0;
  uint64_t at = 0;  // byte in the file, for messages to people
  std::string data;
};

// For messages to people.
std::string QuotedHdf5Path(const std::string& path);

inline uint64_t RoundUp8(uint64_t size) { return (size + 7) / 8 * 8; }

// The blocks of which an HDF5 file is made (hdf5_file.cc lists them), read where its addresses
// lead: none beyond the file's end, and all together no more than the file's size bounds, however
// its addresses run. Errors are kDataLoss and name the byte. Not thread-safe.
class Hdf5Structures {
 public:
  // `source` must outlive this.
  explicit Hdf5Structures(const ByteSource& source) : source_(source) {}

  // Before all else: the address of the root group's header.
  absl::StatusOr<uint64_t> ReadSuperblock();
  uint64_t leaf_entries() const { return leaf_entries_; }  // most of a "SNOD"
  uint64_t node_entries() const { return node_entries_; }  // and of a "TREE"

  // A block; each byte of the file is read once or twice, however the file is made. `what` is for
  // messages.
  absl::StatusOr<std::string> Read(uint64_t at, uint64_t size, const std::string& what);
  // The same, of a block that begins with a signature.
  absl::StatusOr<std::string> ReadSigned(uint64_t at, uint64_t size, const std::string& signature);
  // The object header at `at`, message by message; `path` is for messages.
  absl::StatusOr<std::vector<Hdf5Message>> ReadHeader(const std::string& path, uint64_t at);
  // An object of the global heap at `at`; null: there is none of this number.
  absl::StatusOr<const std::string*> FindInHeap(uint64_t at, uint64_t index);

  absl::Status Damaged(uint64_t at, const std::string& what) const;

 private:
  const ByteSource& source_;
  uint64_t leaf_entries_ = 0;
  uint64_t node_entries_ = 0;
  uint64_t metadata_bytes_ = 0;
  std::map<uint64_t, std::map<uint64_t, std::string>> heaps_;
};

}  // namespace shoal
