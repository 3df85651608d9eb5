#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/archive/byte_source.h"

namespace shoal {

// Max bytes of the names in one group, or of one global heap.
inline constexpr uint64_t kMaxHdf5HeapBytes = uint64_t{16} << 20;

// One message of an object header.
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
  uint64_t at = 0;  // byte in the file, for errors
  std::string data;
};

// A path of the file, quoted for errors.
std::string QuotedHdf5Path(const std::string& path);

inline uint64_t RoundUp8(uint64_t size) { return (size + 7) / 8 * 8; }

// Reads the blocks of an HDF5 file at the addresses in the file (hdf5_file.cc lists the blocks).
// Rejects blocks beyond the file's end. Bounds the size of all blocks together by the file's size,
// for any addresses. Errors are kDataLoss and name the byte. Not thread-safe.
class Hdf5Structures {
 public:
  // `source` must outlive this.
  explicit Hdf5Structures(const ByteSource& source) : source_(source) {}

  // Reads the superblock and returns the address of the root group's header. Call this first.
  absl::StatusOr<uint64_t> ReadSuperblock();
  uint64_t leaf_entries() const { return leaf_entries_; }  // max of a "SNOD"
  uint64_t node_entries() const { return node_entries_; }  // max of a "TREE"

  // Reads a block. Rejects it if all blocks so far exceed 256 MiB or four times the file's size.
  // `what` is for errors.
  absl::StatusOr<std::string> Read(uint64_t at, uint64_t size, const std::string& what);
  // The same for a block that begins with `signature`.
  absl::StatusOr<std::string> ReadSigned(uint64_t at, uint64_t size, const std::string& signature);
  // Reads all messages of the object header at `at`. `path` is for errors.
  absl::StatusOr<std::vector<Hdf5Message>> ReadHeader(const std::string& path, uint64_t at);
  // Finds an object of the global heap at `at`. Returns null if it has no object `index`.
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
