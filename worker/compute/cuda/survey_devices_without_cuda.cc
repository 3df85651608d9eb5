#include "worker/compute/cuda/device_survey.h"

namespace shoal::cuda {

DeviceSurvey SurveyDevices() { return {.built_with_cuda = false}; }

}  // namespace shoal::cuda
