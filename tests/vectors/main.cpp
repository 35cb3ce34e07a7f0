// ringproof-vectors FOLDER: writes the vector files anew.
#include <fstream>
#include <iostream>

#include "tests/vectors/vectors.hpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: ringproof-vectors FOLDER\n";
    return 2;
  }
  for (const auto& file : ringproof::vectors::vector_files()) {
    const std::string path = std::string(argv[1]) + "/" + file.name;
    std::ofstream(path, std::ios::binary) << ringproof::vectors::vector_text(file);
    std::cout << path << '\n';
  }
}
