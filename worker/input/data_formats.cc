#include "worker/input/data_formats.h"

namespace shoal {
namespace {

constexpr DataFormat kFormats[] = {
    {"arrays", OpenArrays, InspectArrays},
    {"image_folder", OpenImageFolder, InspectImageFolder},
    {"cifar10", OpenCifar, InspectCifar},
    {"cifar100", OpenCifar, InspectCifar},
    {"npz", OpenNpz, InspectNpz},
    {"csv", OpenCsv, InspectCsv},
    {"tfrecord", OpenTfRecord, InspectTfRecord},
};

}  // namespace

const DataFormat* FindDataFormat(const std::string& name) {
  for (const DataFormat& format : kFormats) {
    if (name == format.name) return &format;
  }
  return nullptr;
}

}  // namespace shoal
