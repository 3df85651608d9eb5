#include "ps/store/chunk_snapshot.h"

#include <utility>

namespace shoal {

ChunkSnapshot MakeSnapshot(std::shared_ptr<const ValueBuffers> buffers,
                           const ValueBuffers::Hold& values, int64_t size, uint64_t version) {
  struct Reader {
    std::shared_ptr<const ValueBuffers> buffers;
    ValueBuffers::Hold hold;
  };
  auto reader = std::make_shared<Reader>(Reader{std::move(buffers), values});
  const auto* data = reinterpret_cast<const char*>(values.data());
  return {.version = version, .payload = {{data, size * sizeof(float), std::move(reader)}}};
}

}  // namespace shoal
