import type { PageRoute } from "../../app/routes";

const route: PageRoute = {
  path: "/logs",
  title: "Logs",
  group: "Details",
  order: 80,
  load: () => import("./index"),
};
export default route;
