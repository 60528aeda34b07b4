import { describe, expect, it } from "vitest";

import { cut, shown, visible } from "./text";

describe("visible", () => {
  it("leaves ordinary text of any script as it is", () => {
    expect(visible("orders/größe/注文/שלום/<script>'\"&")).toBe("orders/größe/注文/שלום/<script>'\"&");
  });

  it("writes out marks that turn the reading direction", () => {
    expect(visible("gnp\u202excod.exe")).toBe("gnp<U+202E>xcod.exe");
  });

  it("writes out control characters and invisible ones", () => {
    expect(visible("a\u0000b\u001b[31mc\u200bd\ufeffe\u0085")).toBe("a<NUL>b<U+001B>[31mc<U+200B>d<U+FEFF>e<U+0085>");
    expect(visible("one\ntwo\r\n")).toBe("one<LF>two<CR><LF>");
  });

  it("writes out half of a surrogate pair and keeps whole ones", () => {
    expect(visible("\ud83d x 😀")).toBe("<U+D83D> x 😀");
  });
});

describe("shown", () => {
  it("marks the cut, also if written-out characters exceed the limit", () => {
    expect(shown("abc", 3)).toBe("abc");
    expect(shown("abcd", 3)).toBe("ab…");
    expect(shown("\0\0", 6)).toBe("<NUL>…");
  });
});

describe("cut", () => {
  it("keeps text within the limit", () => {
    expect(cut("abc", 3)).toBe("abc");
  });

  it("does not cut a surrogate pair in two", () => {
    expect(cut("ab😀", 3)).toBe("ab");
    expect(cut("abcd", 3)).toBe("abc");
  });
});
