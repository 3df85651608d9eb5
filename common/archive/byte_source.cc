#include "common/archive/byte_source.h"

#include "common/base/status_macros.h"

namespace shoal {

absl::StatusOr<ByteSource> OpenByteSource(const std::string& path, FileSystem* files) {
  SHOAL_ASSIGN_OR_RETURN(std::shared_ptr<File> file, files->Open(path, FileSystem::Mode::kRead));
  SHOAL_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  return ByteSource{
      .name = path, .size = size, .read = [file](uint64_t offset, void* out, uint64_t bytes) {
        return file->ReadAt(offset, out, bytes);
      }};
}

}  // namespace shoal
