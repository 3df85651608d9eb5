#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tests/common/job/job_files.h"

namespace shoal {

// A test with the model file of DenseModel(10), and with a cluster spec of two ps and one worker.
class ValidationTest : public JobFilesTest {
 protected:
  ValidationTest() {
    Write("model.json", DenseModel(10).dump());
    spec_ = Write("spec.json",
                  R"({"cluster": {"chief": ["a:1"], "ps": ["b:1", "c:1"], "worker": ["d:1"]}})");
  }

  // Returns a Dense of 6 to `units`: 6 * units + units parameters.
  static nlohmann::json DenseModel(int units) {
    return {{"class_name", "Sequential"},
            {"config",
             {{"name", "m"},
              {"layers",
               {{{"class_name", "InputLayer"},
                 {"config", {{"name", "x"}, {"batch_shape", {nullptr, 6}}}}},
                {{"class_name", "Dense"}, {"config", {{"name", "dense"}, {"units", units}}}}}}}}};
  }

  // Returns the first 128 bytes of an NPY file of bytes.
  static std::string NpyHeader(const std::string& shape) {
    std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': " + shape + ", }";
    header.resize(117, ' ');
    return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + "\n";
  }

  std::string spec_;
};

}  // namespace shoal
