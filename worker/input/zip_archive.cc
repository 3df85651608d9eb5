#include "worker/input/zip_archive.h"

#include <zip.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/printable.h"
#include "worker/input/file_content.h"

namespace shoal {
namespace {

constexpr zip_int64_t kMostNames = 1000;
constexpr size_t kMostShown = 20;

// The first ones, for messages.
std::string Shown(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMostShown); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", Printable(names[i], kMostNameBytes));
  }
  if (names.size() > kMostShown) text += " and more";
  return names.empty() ? "nothing" : text;
}

}  // namespace

void ZipArchive::Discard::operator()(zip* archive) const { zip_discard(archive); }
void ZipArchive::Member::Close::operator()(zip_file* file) const { zip_fclose(file); }

absl::StatusOr<ZipArchive> ZipArchive::Open(const std::string& path) {
  // First as a file: libzip would wait for a pipe.
  uint64_t size = 0;
  if (auto file = OpenRegularFile(path, "expected a zip archive", &size); !file.ok())
    return file.status();
  int code = 0;
  zip* archive = zip_open(path.c_str(), ZIP_RDONLY, &code);
  if (archive != nullptr) return ZipArchive(path, archive);
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string message = zip_error_strerror(&error);
  zip_error_fini(&error);
  return absl::DataLossError(
      absl::StrCat(path, ": cannot be read as a zip archive of ", size, " bytes: ", message));
}

std::vector<std::string> ZipArchive::Names() const {
  std::vector<std::string> names;
  const zip_int64_t count = std::min(zip_get_num_entries(archive_.get(), 0), kMostNames);
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
        absl::StrCat(path_, ": has no member ", name, "; there is ", Shown(Names())));
  }
  zip_file* file = zip_fopen_index(archive_.get(), static_cast<zip_uint64_t>(index), 0);
  if (file == nullptr) {
    return absl::DataLossError(absl::StrCat(path_, ": ", name, ": ", zip_strerror(archive_.get())));
  }
  return Member(absl::StrCat(path_, ": ", name), file);
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

}  // namespace shoal
