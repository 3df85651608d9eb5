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

inline constexpr int64_t kMostZipNames = 1000;

// A zip archive, read by libzip. Nothing is unpacked to files: whoever reads a member says how much
// of it. Not thread-safe; its members must not outlive it.
class ZipArchive {
 public:
  // Errors name the file and what is wrong with it; a missing one is kNotFound.
  static absl::StatusOr<ZipArchive> Open(const std::string& path);

  const std::string& path() const { return path_; }

  // Of the members, in the archive's order; at most kMostZipNames.
  std::vector<std::string> Names() const;

  // A member, read from its beginning to its end.
  class Member {
   public:
    const std::string& name() const { return name_; }  // with the archive's
    // Of what is read, as the archive says.
    uint64_t size() const { return size_; }
    // Fills `out`; returns fewer bytes only at the end, where the checksum is compared. kDataLoss
    // where what is stored is damaged.
    absl::StatusOr<size_t> Read(std::span<char> out);
    // Reads on from byte `position`. Only of a member that is not compressed; no checksum is
    // compared afterwards.
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
  // The member of this name; kInvalidArgument, which lists some of those there are, without one.
  absl::StatusOr<Member> OpenMember(const std::string& name);
  // The whole of a member; kDataLoss where it has more than `most` bytes, whatever it says.
  absl::StatusOr<std::string> ReadMember(const std::string& name, uint64_t most);

 private:
  struct Discard {
    void operator()(zip* archive) const;
  };
  ZipArchive(std::string path, zip* archive) : path_(std::move(path)), archive_(archive) {}

  std::string path_;
  std::unique_ptr<zip, Discard> archive_;
};

// What a member of an archive is made of: a text, or a file.
struct ZipContent {
  std::string name;
  std::string text = {};
  std::string file = {};
};

// Writes a new archive, its members as they are, not compressed.
absl::Status WriteZipArchive(const std::string& path, const std::vector<ZipContent>& members);

}  // namespace shoal
