#include "common/archive/byte_source.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "common/base/crc32c.h"
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

absl::StatusOr<uint32_t> ChecksumOf(const ByteSource& source) {
  std::vector<char> piece(std::min<uint64_t>(source.size, uint64_t{1} << 20));
  uint32_t checksum = 0;
  for (uint64_t done = 0; done < source.size;) {
    const uint64_t size = std::min<uint64_t>(piece.size(), source.size - done);
    SHOAL_RETURN_IF_ERROR(source.read(done, piece.data(), size));
    checksum = Crc32c(checksum, piece.data(), size);
    done += size;
  }
  return checksum;
}

}  // namespace shoal
