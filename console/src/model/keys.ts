/** Keys of addresses as links and addresses report them: a class letter, a phase for mobile ones, and the address. */

/** Classes whose key has a phase digit behind the letter. */
const WITH_PHASE = "M";
const CLASSES = "MLRTCDEFH";

/** Return the address in a key such as "M0queue.1" or "Ltemp.x"; "" for an absent key. */
export function addressOfKey(key: string): string {
  const letter = key.charAt(0);
  if (!CLASSES.includes(letter)) return key;
  return key.slice(WITH_PHASE.includes(letter) ? 2 : 1);
}

/** Return whether the key is of an address that users send to: no reply address, router, area or management node. */
export function isUserKey(key: string): boolean {
  if (key === "" || key.startsWith("M0$") || key.startsWith("M0_$")) return false;
  return key.startsWith("M") || key.startsWith("C") || key.startsWith("D") || key.startsWith("E") || key.startsWith("F");
}
