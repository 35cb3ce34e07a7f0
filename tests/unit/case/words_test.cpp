// Words from files in messages.
#include "oracle/case/words.hpp"

#include <array>

#include "oracle/case/sha256.hpp"
#include "tests/support/property.hpp"

namespace ringproof::oracle {

TEST_CASE("the edit distance counts inserted, deleted, replaced and swapped letters") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("causal", "causal") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("casual", "causal") == 1);
  CHECK(edit_distance("scael", "scale") == 1);
  CHECK(edit_distance("soft_cap", "softcap") == 1);
  CHECK(edit_distance("kitten", "sitting") == 3);
  test::property("it is symmetric and bounded by the longer word",
                 [](const std::string& a, const std::string& b) {
                   RC_ASSERT(edit_distance(a, b) == edit_distance(b, a));
                   RC_ASSERT(edit_distance(a, b) <= std::max(a.size(), b.size()));
                   RC_ASSERT((edit_distance(a, b) == 0) == (a.substr(0, 64) == b.substr(0, 64)));
                 });
}

TEST_CASE("the nearest known word is found, the first of equals") {
  constexpr std::array<std::string_view, 3> known{"causal", "scale", "window"};
  CHECK(nearest("casual", known) == "causal");
  CHECK(nearest("windows", known) == "window");
  CHECK(nearest("", known) == "scale");
  constexpr std::array<std::string_view, 2> equals{"keys", "kegs"};
  CHECK(nearest("kets", equals) == "keys");
}

TEST_CASE("a word resembles another if more than half of the longer one is right") {
  CHECK(resembles("bf16-falsh", "bf16-flash"));
  CHECK(resembles("fp23", "fp32"));
  CHECK_FALSE(resembles("fp16", "fp32"));
  CHECK_FALSE(resembles("fp8", "fp16"));
  CHECK_FALSE(resembles("nosuch", "fp64"));
  CHECK_FALSE(resembles("", "fp64"));
  CHECK_FALSE(resembles(std::string(1000, 'x'), "fp64"));
}

TEST_CASE("quoted words are short and printable whatever the file holds") {
  CHECK(in_quotes("q") == "\"q\"");
  CHECK(in_quotes("a\x1b[2J\"\n") == "\"a\\x1b[2J\\x22\\x0a\"");
  CHECK(in_quotes(std::string(1000, 'x')).size() < 70);
  test::property("only printable ASCII leaves", [](const std::string& text) {
    for (const char c : in_quotes(text)) RC_ASSERT(c >= ' ' && c <= '~');
  });
}

TEST_CASE("names lose their control characters and nothing else") {
  CHECK(printable("caf\xc3\xa9 'x'.safetensors") == "caf\xc3\xa9 'x'.safetensors");
  CHECK(printable("a\x1b[2J\n\x7f") == "a\\x1b[2J\\x0a\\x7f");
  CHECK(printable("\xc2\x9b") == "\\xc2\\x9b");  // the one-byte form of ESC [, in UTF-8
  test::property("no control character leaves", [](const std::string& text) {
    for (const char c : printable(text)) RC_ASSERT(static_cast<unsigned char>(c) >= 0x20);
  });
}

TEST_CASE("SHA-256 gives the digests of the standard's examples") {
  CHECK(sha256_hex(std::string_view("abc")) ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256_hex(std::string_view("")) ==
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex(std::string_view("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")) ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256_hex(std::string(1'000'000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  // Every length around the ends of a block takes its own way through the padding.
  CHECK(sha256_hex(std::string(55, 'a')) ==
        "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
  CHECK(sha256_hex(std::string(56, 'a')) ==
        "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
  CHECK(sha256_hex(std::string(64, 'a')) ==
        "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
}

}  // namespace ringproof::oracle
