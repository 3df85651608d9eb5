#include "worker/compute/cuda/runtime/shared_library.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace shoal::cuda {

absl::StatusOr<SharedLibrary> SharedLibrary::Open(const std::string& path) {
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return absl::FailedPreconditionError(dlerror());
  return SharedLibrary(path, handle);
}

void* SharedLibrary::Symbol(const char* name) {
  void* const symbol = dlsym(handle_, name);
  if (symbol == nullptr) {
    found_.Update(absl::FailedPreconditionError(absl::StrCat(path_, " has no function ", name)));
  }
  return symbol;
}

absl::Status CannotBeUsed(const LibraryPlaces& places, const std::vector<absl::Status>& errors) {
  const auto message = [](std::string* out, const absl::Status& error) {
    absl::StrAppend(out, error.message());
  };
  return absl::FailedPreconditionError(absl::StrCat(
      places.purpose, " cannot be used, looked for as ", absl::StrJoin(places.paths, " and "), " (",
      absl::StrJoin(errors, "; ", message), "): ", places.install,
      ", add its folder to LD_LIBRARY_PATH unless the system searches it, or start with "
      "--device=cpu"));
}

}  // namespace shoal::cuda
