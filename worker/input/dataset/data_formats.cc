#include "worker/input/dataset/data_formats.h"

namespace shoal {
namespace {

#define DATA_FORMAT(name, functions, fields) {name, Open##functions, Inspect##functions},
constexpr DataFormat kFormats[] = {
#include "common/job/data_format_list.inc"
    {"pictures", OpenPictures, nullptr},  // for predictions, which have no class; not for jobs
};
#undef DATA_FORMAT

}  // namespace

const DataFormat* FindDataFormat(const std::string& name) {
  for (const DataFormat& format : kFormats) {
    if (name == format.name) return &format;
  }
  return nullptr;
}

}  // namespace shoal
