import { useEffect, useRef, type RefObject } from "react";

import { isDirection, nearest, type Point } from "../../model/nearest";
import { PAN_STEP, ZOOM_STEP, type ZoomControl } from "./useZoom";

/** A pointer that moves less than this, in pixels, clicks; one that moves farther drags. */
const CLICK_PIXELS = 4;

/** What gestures act on, and the functions that they call. */
export interface Gestures {
  readonly points: ReadonlyMap<string, Point>;
  readonly zoom: ZoomControl;
  readonly onSelect: (id: string) => void;
  readonly onOpen: (id: string) => void;
  readonly onPoint: (node: string | null) => void;
  readonly onDrag: (node: string, by: Point) => void;
  readonly onTogglePin: (node: string) => void;
  readonly onFit: () => void;
}

const idAt = (target: EventTarget | null, attribute: "node" | "edge"): string | null =>
  target instanceof Element ? (target.closest(`[data-${attribute}]`)?.getAttribute(`data-${attribute}`) ?? null) : null;

/** Focus a node of the picture. */
export function focusNode(svg: SVGSVGElement | null, id: string): void {
  const found = [...(svg?.querySelectorAll<SVGGElement>("[data-node]") ?? [])].find((node) => node.dataset["node"] === id);
  found?.focus({ preventScroll: true });
}

function applyKey(svg: SVGSVGElement, event: KeyboardEvent, gestures: Gestures): boolean {
  const node = idAt(event.target, "node");
  const { zoom } = gestures;
  if (isDirection(event.key) && event.shiftKey) {
    const [x, y] = { ArrowUp: [0, PAN_STEP], ArrowDown: [0, -PAN_STEP], ArrowLeft: [PAN_STEP, 0], ArrowRight: [-PAN_STEP, 0] }[event.key] as [number, number];
    zoom.panBy(x, y);
    return true;
  }
  if (isDirection(event.key)) {
    const next = nearest(gestures.points, node ?? "", event.key);
    const point = next === undefined ? undefined : gestures.points.get(next);
    if (next !== undefined && point !== undefined) {
      zoom.reveal(point.x, point.y);
      focusNode(svg, next);
    }
    return true;
  }
  if (event.key === "+" || event.key === "=") zoom.zoomBy(ZOOM_STEP);
  else if (event.key === "-") zoom.zoomBy(1 / ZOOM_STEP);
  else if (event.key === "0") gestures.onFit();
  else if (node === null) return false;
  else if (event.key === "Enter") gestures.onSelect(node);
  else if (event.key === " ") gestures.onSelect(node);
  else if (event.key.toLowerCase() === "e") gestures.onOpen(node);
  else if (event.key.toLowerCase() === "p") gestures.onTogglePin(node);
  else return false;
  return true;
}

/** Listen to clicks, drags, keys and focus in the picture; one set of listeners serves all nodes. */
export function useGestures(svg: RefObject<SVGSVGElement | null>, gestures: Gestures): void {
  const latest = useRef(gestures);
  useEffect(() => {
    latest.current = gestures;
  });
  useEffect(() => {
    const element = svg.current;
    if (element === null) return undefined;
    const listening = new AbortController();
    const { signal } = listening;
    let drag: { node: string; x: number; y: number; far: boolean } | undefined;
    let dragged = false;
    const onDown = (event: PointerEvent): void => {
      const node = idAt(event.target, "node");
      dragged = false;
      if (node !== null && event.button === 0) drag = { node, x: event.clientX, y: event.clientY, far: false };
    };
    const onMove = (event: PointerEvent): void => {
      if (drag === undefined) return;
      const [x, y] = [event.clientX - drag.x, event.clientY - drag.y];
      if (!drag.far && Math.hypot(x, y) < CLICK_PIXELS) return;
      if (!drag.far) element.setPointerCapture(event.pointerId);
      const scale = latest.current.zoom.scale();
      latest.current.onDrag(drag.node, { x: x / scale, y: y / scale });
      drag = { node: drag.node, x: event.clientX, y: event.clientY, far: true };
      dragged = true;
    };
    const onUp = (): void => {
      drag = undefined;
    };
    const onClick = (event: MouseEvent): void => {
      const id = idAt(event.target, "node") ?? idAt(event.target, "edge");
      if (id !== null && !dragged) latest.current.onSelect(id);
    };
    const onKey = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || !applyKey(element, event, latest.current)) return;
      event.preventDefault();
    };
    const point = (event: Event): void => latest.current.onPoint(idAt(event.target, "node"));
    element.addEventListener("pointerdown", onDown, { signal });
    element.addEventListener("pointermove", onMove, { signal });
    element.addEventListener("pointerup", onUp, { signal });
    element.addEventListener("pointercancel", onUp, { signal });
    element.addEventListener("click", onClick, { signal });
    element.addEventListener("dblclick", (event) => {
      const node = idAt(event.target, "node");
      if (node !== null) latest.current.onOpen(node);
    }, { signal });
    element.addEventListener("keydown", onKey, { signal });
    element.addEventListener("pointerover", point, { signal });
    element.addEventListener("focusin", point, { signal });
    element.addEventListener("pointerleave", () => latest.current.onPoint(null), { signal });
    element.addEventListener("focusout", () => latest.current.onPoint(null), { signal });
    return () => listening.abort();
  }, [svg]);
}
