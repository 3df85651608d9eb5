#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/archive/byte_source.h"

struct zip;
struct zip_file;

namespace shoal {

inline constexpr int64_t kMaxZipNames = 1000;

// A zip archive, read by libzip. It unpacks nothing to files. The reader of a member decides how
// many bytes it reads. Not thread-safe. It must outlive its members.
class ZipArchive {
 public:
  // Errors name the file and the problem. Returns kNotFound if it is missing.
  static absl::StatusOr<ZipArchive> Open(const std::string& path);

  const std::string& path() const { return path_; }

  // The names of the members, in the archive's order; at most kMaxZipNames.
  std::vector<std::string> Names() const;

  // A member of the archive, read from its beginning to its end.
  class Member {
   public:
    const std::string& name() const { return name_; }  // includes the archive's
    // The uncompressed size that the archive states.
    uint64_t size() const { return size_; }
    // Fills `out` and returns the number of bytes. Only at the end it returns fewer, and checks the
    // checksum. Returns kDataLoss if the stored bytes are damaged.
    absl::StatusOr<size_t> Read(std::span<char> out);
    // Continues reading at byte `position`. Requires a member that is not compressed. Later reads
    // check no checksum.
    absl::Status Seek(uint64_t position);
    bool compressed() const { return compressed_; }

   private:
    friend class ZipArchive;
    struct Close {
      void operator()(zip_file* file) const;
    };
    Member(std::string name, uint64_t size, bool compressed, zip_file* file)
        : name_(std::move(name)), size_(size), compressed_(compressed), file_(file) {}

    std::string name_;
    uint64_t size_ = 0;
    bool compressed_ = false;
    std::unique_ptr<zip_file, Close> file_;
    uint64_t position_ = 0;
  };
  // Opens the member with this name. Returns kInvalidArgument, with some of the existing names, if
  // it is missing.
  absl::StatusOr<Member> OpenMember(const std::string& name);
  // Returns a whole member. Returns kDataLoss if its actual size is more than `max_bytes`.
  absl::StatusOr<std::string> ReadMember(const std::string& name, uint64_t max_bytes);

 private:
  struct Discard {
    void operator()(zip* archive) const;
  };
  ZipArchive(std::string path, zip* archive) : path_(std::move(path)), archive_(archive) {}

  std::string path_;
  std::unique_ptr<zip, Discard> archive_;
};

// The content of a new member: a text, or the file with this path.
struct ZipContent {
  std::string name;
  std::string text = {};
  std::string file = {};
};

// Writes a new archive with uncompressed members.
absl::Status WriteZipArchive(const std::string& path, const std::vector<ZipContent>& members);

}  // namespace shoal
