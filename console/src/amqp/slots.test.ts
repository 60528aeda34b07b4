import { expect, it } from "vitest";

import { Slots } from "./slots";

it("admits as many callers as there are slots, and the others in their order", async () => {
  const slots = new Slots(2);
  const begun: number[] = [];
  const all = [1, 2, 3, 4].map(async (number) => {
    await slots.acquire();
    begun.push(number);
  });
  await Promise.all(all.slice(0, 2));
  expect(begun).toEqual([1, 2]);
  slots.release();
  await all[2];
  expect(begun).toEqual([1, 2, 3]);
  slots.release();
  await all[3];
  expect(begun).toEqual([1, 2, 3, 4]);
});
