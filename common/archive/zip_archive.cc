#include "common/archive/zip_archive.h"

#include <zip.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/text/printable.h"
#include "common/files/file_system.h"

namespace shoal {
namespace {

constexpr size_t kMaxShown = 20;

// The first names, for errors.
std::string Shown(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMaxShown); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", Printable(names[i], kMaxNameBytes));
  }
  if (names.size() > kMaxShown) text += " and more";
  return names.empty() ? "nothing" : text;
}

}  // namespace

void ZipArchive::Discard::operator()(zip* archive) const { zip_discard(archive); }
void ZipArchive::Member::Close::operator()(zip_file* file) const { zip_fclose(file); }

absl::StatusOr<ZipArchive> ZipArchive::Open(const std::string& path) {
  // Open it as a file first, because libzip would wait for a pipe.
  SHOAL_ASSIGN_OR_RETURN(const ByteSource file, OpenByteSource(path));
  int code = 0;
  zip* archive = zip_open(path.c_str(), ZIP_RDONLY, &code);
  if (archive != nullptr) return ZipArchive(path, archive);
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string message = zip_error_strerror(&error);
  zip_error_fini(&error);
  return absl::DataLossError(
      absl::StrCat(path, ": cannot be read as a zip archive of ", file.size, " bytes: ", message));
}

std::vector<std::string> ZipArchive::Names() const {
  std::vector<std::string> names;
  const zip_int64_t count =
      std::min<zip_int64_t>(zip_get_num_entries(archive_.get(), 0), kMaxZipNames);
  for (zip_int64_t i = 0; i < count; ++i) {
    const char* name = zip_get_name(archive_.get(), static_cast<zip_uint64_t>(i), ZIP_FL_ENC_GUESS);
    if (name != nullptr) names.push_back(name);
  }
  return names;
}

absl::StatusOr<ZipArchive::Member> ZipArchive::OpenMember(const std::string& name) {
  const zip_int64_t index = zip_name_locate(archive_.get(), name.c_str(), ZIP_FL_ENC_GUESS);
  if (index < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": has no member ", name, "; it has ", Shown(Names())));
  }
  zip_file* file = zip_fopen_index(archive_.get(), static_cast<zip_uint64_t>(index), 0);
  if (file == nullptr) {
    return absl::DataLossError(absl::StrCat(path_, ": ", name, ": ", zip_strerror(archive_.get())));
  }
  // An uncompressed member must have equal stored and actual sizes. zip_fseek of libzip 1.7.3
  // relies on this.
  zip_stat_t stat;
  zip_stat_init(&stat);
  constexpr zip_uint64_t kNeeded = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
  if (zip_stat_index(archive_.get(), static_cast<zip_uint64_t>(index), 0, &stat) != 0 ||
      (stat.valid & kNeeded) != kNeeded ||
      (stat.comp_method == ZIP_CM_STORE && stat.comp_size != stat.size)) {
    zip_fclose(file);
    return absl::DataLossError(
        absl::StrCat(path_, ": ", name, ": is damaged: its size is missing or wrong"));
  }
  return Member(absl::StrCat(path_, ": ", name), stat.size, stat.comp_method != ZIP_CM_STORE, file);
}

absl::StatusOr<std::string> ZipArchive::ReadMember(const std::string& name, uint64_t max_bytes) {
  SHOAL_ASSIGN_OR_RETURN(Member member, OpenMember(name));
  std::string text;
  // The stated size may be wrong, so memory grows only with the bytes read.
  std::vector<char> piece(uint64_t{1} << 16);
  for (;;) {
    SHOAL_ASSIGN_OR_RETURN(const size_t count, member.Read(piece));
    text.append(piece.data(), count);
    if (text.size() > max_bytes) {
      return absl::DataLossError(
          absl::StrCat(member.name(), ": has more than ", max_bytes, " bytes, the max"));
    }
    if (count < piece.size()) return text;
  }
}

absl::StatusOr<size_t> ZipArchive::Member::Read(std::span<char> out) {
  size_t done = 0;
  while (done < out.size()) {
    const zip_int64_t count = zip_fread(file_.get(), out.data() + done, out.size() - done);
    if (count < 0) {
      return absl::DataLossError(absl::StrCat(name_, ": damaged at byte ", position_,
                                              " of it: ", zip_file_strerror(file_.get())));
    }
    if (count == 0) break;
    done += static_cast<size_t>(count);
    position_ += static_cast<uint64_t>(count);
  }
  return done;
}

absl::Status ZipArchive::Member::Seek(uint64_t position) {
  // zip_fseek of libzip 1.7.3 crashes on an empty member.
  if (position >= size_) {
    return absl::DataLossError(
        absl::StrCat(name_, ": has ", size_, " bytes; there is no byte ", position));
  }
  if (zip_fseek(file_.get(), static_cast<zip_int64_t>(position), SEEK_SET) != 0) {
    return absl::DataLossError(absl::StrCat(name_, ": cannot be read at byte ", position, ": ",
                                            zip_file_strerror(file_.get())));
  }
  position_ = position;
  return absl::OkStatus();
}

absl::Status WriteZipArchive(const std::string& path, const std::vector<ZipContent>& members) {
  const auto error = [&path](const char* why) {
    return absl::UnavailableError(absl::StrCat("cannot write ", path, ": ", why));
  };
  int code = 0;
  zip* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_EXCL, &code);
  if (archive == nullptr) {
    zip_error_t open_error;
    zip_error_init_with_code(&open_error, code);
    const absl::Status status = error(zip_error_strerror(&open_error));
    zip_error_fini(&open_error);
    return status;
  }
  for (const ZipContent& member : members) {
    zip_source_t* source =
        member.file.empty() ? zip_source_buffer(archive, member.text.data(), member.text.size(), 0)
                            : zip_source_file(archive, member.file.c_str(), 0, -1);
    const zip_int64_t index =
        source == nullptr ? -1
                          : zip_file_add(archive, member.name.c_str(), source, ZIP_FL_ENC_UTF_8);
    if (index >= 0 &&
        zip_set_file_compression(archive, static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0) == 0) {
      continue;
    }
    const absl::Status status = error(zip_strerror(archive));
    if (index < 0 && source != nullptr) zip_source_free(source);
    zip_discard(archive);
    return status;
  }
  if (zip_close(archive) == 0) return absl::OkStatus();
  const absl::Status status = error(zip_strerror(archive));
  zip_discard(archive);
  return status;
}

}  // namespace shoal
