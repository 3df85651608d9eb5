#include "worker/input/temporary_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace shoal {

std::string TemporaryDirectory() {
  const char* directory = std::getenv("TMPDIR");
  return directory != nullptr && *directory != '\0' ? directory : "/tmp";
}

FileDescriptor OpenTemporaryFile(const std::string& directory) {
  FileDescriptor file(open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file.ok()) return file;
  // Not every file system has O_TMPFILE.
  std::string name = absl::StrCat(directory, "/shoal-input-XXXXXX");
  FileDescriptor named(mkostemp(name.data(), O_CLOEXEC));
  if (named.ok()) unlink(name.c_str());
  return named;
}

}  // namespace shoal
