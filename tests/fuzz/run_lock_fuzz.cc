// A file of .lease, as the next coordinator finds it.

#include <filesystem>
#include <fstream>
#include <string>

#include "coordinator/takeover/run_lock.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

// The lease's directory, which goes when the program ends.
class LeaseDirectory {
 public:
  LeaseDirectory() {
    std::string made = (std::filesystem::temp_directory_path() / "fuzz-lease-XXXXXX").string();
    if (mkdtemp(made.data()) == nullptr) {
      std::perror("fuzz: no temporary directory");
      std::_Exit(78);
    }
    path_ = made;
  }
  ~LeaseDirectory() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const LeaseDirectory directory;
  std::ofstream(directory.path() + "/1", std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  (void)shoal::ReadLeaseHolder(directory.path(), shoal::RealFileSystem());
  return 0;
}
