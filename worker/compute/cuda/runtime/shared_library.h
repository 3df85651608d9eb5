#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace shoal::cuda {

// A shared library, loaded on first use: a program can start without it. A loaded library stays
// loaded, so its functions outlive this.
class SharedLibrary {
 public:
  // kFailedPrecondition, with the system's message, if `path` cannot be loaded. The system searches
  // for a name without a slash, in LD_LIBRARY_PATH first.
  static absl::StatusOr<SharedLibrary> Open(const std::string& path);

  // Sets `function` to the function of this name; null if there is none.
  template <typename Function>
  void Find(const char* name, Function** function) {
    *function = reinterpret_cast<Function*>(Symbol(name));
  }
  // kFailedPrecondition, with the name, if one of the functions is missing.
  const absl::Status& found() const { return found_; }

 private:
  SharedLibrary(std::string path, void* handle) : path_(std::move(path)), handle_(handle) {}
  void* Symbol(const char* name);

  std::string path_;
  void* handle_;
  absl::Status found_;
};

// The purpose of a library, its paths in search order, and the remedy if it is missing: for
// LoadFirst.
struct LibraryPlaces {
  std::string purpose;  // "cuDNN, which computes convolutions,"
  std::vector<std::string> paths;
  std::string install;  // "install cuDNN 9.8.0 or a later 9"
};

// kFailedPrecondition with the text of `places` and the error of each path.
absl::Status CannotBeUsed(const LibraryPlaces& places, const std::vector<absl::Status>& errors);

// Returns the first library of `places` that Library::LoadFrom can load.
template <typename Library>
absl::StatusOr<std::unique_ptr<const Library>> LoadFirst(const LibraryPlaces& places) {
  std::vector<absl::Status> errors;
  for (const std::string& path : places.paths) {
    absl::StatusOr<std::unique_ptr<const Library>> library = Library::LoadFrom(path);
    if (library.ok()) return library;
    errors.push_back(library.status());
  }
  return CannotBeUsed(places, errors);
}

}  // namespace shoal::cuda
