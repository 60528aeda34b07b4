import { expect, it } from "vitest";

import { Slots } from "./slots";

it("lets as many through as there are slots, the others in their order", async () => {
  const slots = new Slots(2);
  const begun: number[] = [];
  const all = [1, 2, 3, 4].map(async (number) => {
    await slots.take();
    begun.push(number);
  });
  await Promise.all(all.slice(0, 2));
  expect(begun).toEqual([1, 2]);
  slots.give();
  await all[2];
  expect(begun).toEqual([1, 2, 3]);
  slots.give();
  await all[3];
  expect(begun).toEqual([1, 2, 3, 4]);
});
