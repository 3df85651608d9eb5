#include "worker/input/data_formats.h"

namespace shoal {
namespace {

struct Entry {
  const char* name;
  OpenFormat open;
};
constexpr Entry kFormats[] = {
    {"arrays", OpenArrays},     {"image_folder", OpenImageFolder},
    {"cifar10", OpenCifar},     {"cifar100", OpenCifar},
    {"npz", OpenNpz},           {"csv", OpenCsv},
    {"tfrecord", OpenTfRecord},
};

}  // namespace

OpenFormat FindDataFormat(const std::string& name) {
  for (const Entry& format : kFormats) {
    if (name == format.name) return format.open;
  }
  return nullptr;
}

}  // namespace shoal
