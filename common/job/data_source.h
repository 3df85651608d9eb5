#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shoal {

// Where examples are and how they are read: one entry of a job's data section, checked. Which
// fields a format takes, the table in data_source_reader.cc says; the others are at their defaults.
// The words are those of keras.utils.image_dataset_from_directory and tf.data where these have any.
struct DataSource {
  // What an example has for an input of the model, in the format's own terms: a file, an array,
  // columns, a key.
  struct Feature {
    std::string input;  // its name; empty: the model's only one
    std::vector<std::string> from;
  };

  std::string images;  // the file of examples, for a model with one input; absolute, as all paths
  std::string labels;  // the file, array, column or key of the labels
  // The same of a number for each example, what it counts in the loss; empty: all count 1.
  std::string weights;
  std::string format = "arrays";
  std::vector<std::string> paths;  // files, the last part of each perhaps a pattern; or a folder
  std::vector<Feature> features;

  // How a picture becomes an example.
  int64_t image_height = 0;  // 0, both: those of the model's input
  int64_t image_width = 0;
  std::string color_mode;  // "grayscale", "rgb", "rgba"; empty: what the model's input has
  std::string interpolation = "bilinear";  // or "nearest"
  bool crop_to_aspect_ratio = false;
  bool reduced_decode = false;   // of a JPEG that is far larger
  std::string damaged = "fail";  // "skip": another example in the place of a damaged one

  // Which label an example gets: of image_folder "int", "categorical" or "binary", of cifar100
  // "fine" or "coarse"; empty: the first of these.
  std::string label_mode;
  // Empty: the folders, in sorted order; of a test set, those of the training set.
  std::vector<std::string> class_names;

  std::string delimiter = ",";  // of csv
  bool header = true;           // of csv: its first row has the columns' names

  // The part of the data that is used. An example belongs to the same part on every machine.
  double validation_split = 0;  // share of the examples
  double test_split = 0;
  std::string subset;  // "training", "validation", "test"; empty: all of it
  uint64_t seed = 0;   // of the choice

  // Nobody asks for labels, which need not be there: for predictions. No job says so.
  bool unlabelled = false;

  std::string cache;  // of decoded examples: "memory", "disk"; empty: none

  bool empty() const { return images.empty() && features.empty() && paths.empty(); }
};

}  // namespace shoal
