#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

struct zip;
struct zip_file;

namespace shoal {

// A zip archive, read by libzip. Nothing is unpacked to files: whoever reads a member says how much
// of it. Not thread-safe; its members must not outlive it.
class ZipArchive {
 public:
  // Errors name the file and what is wrong with it; a missing one is kNotFound.
  static absl::StatusOr<ZipArchive> Open(const std::string& path);

  const std::string& path() const { return path_; }

  // Of the members, in the archive's order; at most 1,000.
  std::vector<std::string> Names() const;

  // A member, read from its beginning to its end.
  class Member {
   public:
    // Fills `out`; returns fewer bytes only at the end, where the checksum is compared. kDataLoss
    // where what is stored is damaged.
    absl::StatusOr<size_t> Read(std::span<char> out);

   private:
    friend class ZipArchive;
    struct Close {
      void operator()(zip_file* file) const;
    };
    Member(std::string name, zip_file* file) : name_(std::move(name)), file_(file) {}

    std::string name_;  // with the archive's
    std::unique_ptr<zip_file, Close> file_;
    uint64_t position_ = 0;
  };
  // The member of this name; kInvalidArgument, which lists some of those there are, without one.
  absl::StatusOr<Member> OpenMember(const std::string& name);

 private:
  struct Discard {
    void operator()(zip* archive) const;
  };
  ZipArchive(std::string path, zip* archive) : path_(std::move(path)), archive_(archive) {}

  std::string path_;
  std::unique_ptr<zip, Discard> archive_;
};

}  // namespace shoal
