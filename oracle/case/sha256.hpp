// SHA-256 (FIPS 180-4): names a problem file or a contract by its bytes. Not a security boundary.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace ringproof::oracle {

/// 64 lower-case hexadecimal digits.
std::string sha256_hex(std::span<const std::byte> bytes);
std::string sha256_hex(std::string_view text);

}  // namespace ringproof::oracle
