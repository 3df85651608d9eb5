#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shoal {

// The place of examples and how to read them: one checked entry of a job's data section. The table
// in data_source_reader.cc lists the fields that each format accepts. All other fields have their
// defaults. Names follow keras.utils.image_dataset_from_directory and tf.data.
struct DataSource {
  // An example's data for one input of the model, in the format's terms: a file, an array, columns
  // or a key.
  struct Feature {
    std::string input;  // the input's name; empty: the model's only input
    std::vector<std::string> from;
  };

  std::string images;  // file of examples, for a model with one input; absolute, as all paths
  std::string labels;  // file, array, column or key of the labels
  // File, array, column or key of each example's weight in the loss; empty: all weights are 1.
  std::string weights;
  std::string format = "arrays";
  std::vector<std::string> paths;  // files, whose last part may be a pattern; or a folder
  std::vector<Feature> features;

  // How to turn a picture into an example.
  int64_t image_height = 0;  // both 0: the size of the model's input
  int64_t image_width = 0;
  std::string color_mode;  // "grayscale", "rgb", "rgba"; empty: by the model's input
  std::string interpolation = "bilinear";  // or "nearest"
  bool crop_to_aspect_ratio = false;
  bool reduced_decode = false;   // for a JPEG that is far larger
  std::string damaged = "fail";  // "skip": replaces a damaged example with another one

  // The kind of label: for image_folder "int", "categorical" or "binary", for cifar100 "fine" or
  // "coarse". Empty: the first of these.
  std::string label_mode;
  // Empty: the folders, in sorted order. For a test set, those of the training set.
  std::vector<std::string> class_names;

  std::string delimiter = ",";  // for csv
  bool header = true;           // for csv: the first row has the names of the columns

  // The part of the data to use. An example belongs to the same part on every machine.
  double validation_split = 0;  // fraction of the examples
  double test_split = 0;
  std::string subset;  // "training", "validation", "test"; empty: all of it
  uint64_t seed = 0;   // for choosing the parts

  // Labels are not read and may be missing: for predictions. Not a field of a job.
  bool unlabelled = false;
  // The data must lie below one of these directories, real paths; empty: anywhere. Not a field of a
  // job: the worker's own operator sets it (--data_root).
  std::vector<std::string> roots;

  std::string cache;  // cache of decoded examples: "memory", "disk"; empty: none

  bool empty() const { return images.empty() && features.empty() && paths.empty(); }
};

}  // namespace shoal
