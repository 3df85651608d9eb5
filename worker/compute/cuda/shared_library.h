#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace shoal::cuda {

// A shared library, loaded when it is first asked for: a program needs none of these to start. What
// was loaded stays so, so that its functions outlive this.
class SharedLibrary {
 public:
  // kFailedPrecondition, with what the system says, where `path` leads to none. A name without a
  // slash is looked for as the system does it: in LD_LIBRARY_PATH first.
  static absl::StatusOr<SharedLibrary> Open(const std::string& path);

  // Sets `function` to the one of this name, null where there is none.
  template <typename Function>
  void Find(const char* name, Function** function) {
    *function = reinterpret_cast<Function*>(Symbol(name));
  }
  // kFailedPrecondition where one of those that were asked for is not there; names it.
  const absl::Status& found() const { return found_; }

 private:
  SharedLibrary(std::string path, void* handle) : path_(std::move(path)), handle_(handle) {}
  void* Symbol(const char* name);

  std::string path_;
  void* handle_;
  absl::Status found_;
};

// What a library is for, where it is looked for, in this order, and what there is to do where it is
// not there: for LoadFirst.
struct LibraryPlaces {
  std::string purpose;  // "cuDNN, which computes convolutions,"
  std::vector<std::string> paths;
  std::string install;  // "install cuDNN 9.8.0 or a later 9"
};

// kFailedPrecondition: what `places` says, with what came of each path.
absl::Status CannotBeUsed(const LibraryPlaces& places, const std::vector<absl::Status>& errors);

// The first of `places` from which Library::LoadFrom gives one.
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
