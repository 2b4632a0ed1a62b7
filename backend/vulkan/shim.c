//go:build cgo && (linux || windows || freebsd || (darwin && moltenvk))

#include "shim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#include <windows.h>
#else
#include <dlfcn.h>
#endif

#if UINTPTR_MAX > 0xffffffffu
// The published sizes on 64-bit platforms: a typing error in vk_min.h does not compile.
_Static_assert(sizeof(VkPhysicalDeviceProperties) == 824, "VkPhysicalDeviceProperties");
_Static_assert(sizeof(VkPhysicalDeviceLimits) == 504, "VkPhysicalDeviceLimits");
_Static_assert(sizeof(VkPhysicalDeviceFeatures) == 220, "VkPhysicalDeviceFeatures");
_Static_assert(sizeof(VkPhysicalDeviceMemoryProperties) == 520, "VkPhysicalDeviceMemoryProperties");
_Static_assert(sizeof(VkPhysicalDeviceIDProperties) == 64, "VkPhysicalDeviceIDProperties");
_Static_assert(sizeof(VkPhysicalDeviceDriverProperties) == 536, "VkPhysicalDeviceDriverProperties");
_Static_assert(sizeof(VkPhysicalDeviceFloatControlsProperties) == 88, "VkPhysicalDeviceFloatControlsProperties");
_Static_assert(sizeof(VkPhysicalDeviceSubgroupSizeControlProperties) == 32, "VkPhysicalDeviceSubgroupSizeControlProperties");
_Static_assert(sizeof(VkPhysicalDeviceSubgroupSizeControlFeatures) == 24, "VkPhysicalDeviceSubgroupSizeControlFeatures");
_Static_assert(sizeof(VkPipelineShaderStageRequiredSubgroupSizeCreateInfo) == 24, "VkPipelineShaderStageRequiredSubgroupSizeCreateInfo");
_Static_assert(sizeof(VkDeviceCreateInfo) == 72, "VkDeviceCreateInfo");
_Static_assert(sizeof(VkComputePipelineCreateInfo) == 96, "VkComputePipelineCreateInfo");
_Static_assert(sizeof(VkWriteDescriptorSet) == 64, "VkWriteDescriptorSet");
_Static_assert(sizeof(VkBufferViewCreateInfo) == 56, "VkBufferViewCreateInfo");
_Static_assert(sizeof(VkSubmitInfo) == 72, "VkSubmitInfo");
#endif

#define INSTANCE_FN(instance, name) PFN_##name name = (PFN_##name)((PFN_vkGetInstanceProcAddr)gipa)(instance, #name)

void *agpu_loader_open(const char *name, char *err, size_t err_size) {
	void *sym = NULL;
	err[0] = 0;
#if defined(_WIN32)
	HMODULE lib = LoadLibraryA(name);
	if (lib) {
		sym = (void *)GetProcAddress(lib, "vkGetInstanceProcAddr");
	}
	if (!sym) {
		snprintf(err, err_size, "Windows error %lu", (unsigned long)GetLastError());
	}
#else
	void *lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (lib) {
		sym = dlsym(lib, "vkGetInstanceProcAddr");
	}
	if (!sym) {
		const char *why = dlerror();
		snprintf(err, err_size, "%s", why ? why : "vkGetInstanceProcAddr is missing");
	}
#endif
	return sym;
}

uint32_t agpu_instance_version(void *gipa) {
	INSTANCE_FN(NULL, vkEnumerateInstanceVersion);
	uint32_t v = 0;
	if (!vkEnumerateInstanceVersion || vkEnumerateInstanceVersion(&v) != VK_SUCCESS) {
		v = 1u << 22; // a loader of Vulkan 1.0 lacks the function
	}
	return v;
}

VkResult agpu_instance_create(void *gipa, uint32_t api_version, VkInstance *out) {
	static const char *const portability = "VK_KHR_portability_enumeration";
	INSTANCE_FN(NULL, vkCreateInstance);
	INSTANCE_FN(NULL, vkEnumerateInstanceExtensionProperties);
	if (!vkCreateInstance || !vkEnumerateInstanceExtensionProperties) {
		return VK_ERROR_INITIALIZATION_FAILED;
	}
	uint32_t n = 0;
	VkResult r = vkEnumerateInstanceExtensionProperties(NULL, &n, NULL);
	if (r < 0) {
		return r;
	}
	VkExtensionProperties *exts = calloc(n + 1, sizeof *exts);
	if (!exts) {
		return VK_ERROR_OUT_OF_HOST_MEMORY;
	}
	r = vkEnumerateInstanceExtensionProperties(NULL, &n, exts);
	int found = 0;
	for (uint32_t i = 0; r >= 0 && i < n; i++) {
		found |= !strcmp(exts[i].extensionName, portability);
	}
	free(exts);
	if (r < 0 || !found) {
		return r < 0 ? r : VK_ERROR_EXTENSION_NOT_PRESENT;
	}
	VkApplicationInfo app = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .pApplicationName = "anygpu", .apiVersion = api_version};
	VkInstanceCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
		.flags = VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR,
		.pApplicationInfo = &app,
		.enabledExtensionCount = 1,
		.ppEnabledExtensionNames = &portability,
	};
	return vkCreateInstance(&info, NULL, out);
}

static int has_extension(const VkExtensionProperties *exts, uint32_t n, const char *name) {
	for (uint32_t i = 0; i < n; i++) {
		if (!strcmp(exts[i].extensionName, name)) {
			return 1;
		}
	}
	return 0;
}

static VkResult device_extensions(void *gipa, VkInstance instance, VkPhysicalDevice phys, VkExtensionProperties **out, uint32_t *n) {
	INSTANCE_FN(instance, vkEnumerateDeviceExtensionProperties);
	if (!vkEnumerateDeviceExtensionProperties) {
		return VK_ERROR_INITIALIZATION_FAILED;
	}
	VkResult r = vkEnumerateDeviceExtensionProperties(phys, NULL, n, NULL);
	if (r < 0) {
		return r;
	}
	*out = calloc(*n + 1, sizeof **out);
	if (!*out) {
		return VK_ERROR_OUT_OF_HOST_MEMORY;
	}
	r = vkEnumerateDeviceExtensionProperties(phys, NULL, n, *out);
	if (r < 0) {
		free(*out);
		*out = NULL;
	}
	return r;
}

// chain puts s in front of the chain that starts at *head.
#define CHAIN(head, s) ((s)->pNext = (void *)*(head), *(head) = (void *)(s))

#define SIZE_CONTROL "VK_EXT_subgroup_size_control"
#define API_1_1 ((1u << 22) | (1u << 12))
#define API_1_2 ((1u << 22) | (2u << 12))
#define API_1_3 ((1u << 22) | (3u << 12))

static int has_size_control(const agpu_phys *p, const VkExtensionProperties *exts, uint32_t n) {
	return p->api_version >= API_1_3 || has_extension(exts, n, SIZE_CONTROL);
}

static void query_properties(PFN_vkGetPhysicalDeviceProperties2 get, VkPhysicalDevice phys, const VkExtensionProperties *exts,
	uint32_t n, agpu_phys *out) {
	void *head = NULL;
	VkPhysicalDeviceIDProperties id = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
	VkPhysicalDeviceSubgroupProperties subgroup = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
	VkPhysicalDeviceMaintenance3Properties m3 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
	VkPhysicalDeviceMaintenance4Properties m4 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES};
	VkPhysicalDeviceDriverProperties driver = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
	VkPhysicalDeviceFloatControlsProperties fc = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES};
	CHAIN(&head, &id);
	CHAIN(&head, &subgroup);
	CHAIN(&head, &m3);
	if (out->api_version >= API_1_2 || has_extension(exts, n, "VK_KHR_driver_properties")) {
		CHAIN(&head, &driver);
	}
	if (out->api_version >= API_1_2 || has_extension(exts, n, "VK_KHR_shader_float_controls")) {
		CHAIN(&head, &fc);
	}
	if (out->api_version >= API_1_3) {
		CHAIN(&head, &m4);
	}
	VkPhysicalDeviceSubgroupSizeControlProperties control = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES};
	if (has_size_control(out, exts, n)) {
		CHAIN(&head, &control);
	}
	VkPhysicalDeviceProperties2 p = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = head};
	get(phys, &p);

	memcpy(out->device_uuid, id.deviceUUID, VK_UUID_SIZE);
	memcpy(out->driver_name, driver.driverName, sizeof out->driver_name);
	memcpy(out->driver_info, driver.driverInfo, sizeof out->driver_info);
	out->driver_id = driver.driverID;
	out->subgroup_size = subgroup.subgroupSize;
	// Whether workgroups are whole subgroups of that size is asked for with the features.
	if ((subgroup.supportedStages & control.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) &&
		(subgroup.supportedOperations & VK_SUBGROUP_FEATURE_SHUFFLE_BIT) && subgroup.subgroupSize >= control.minSubgroupSize &&
		subgroup.subgroupSize <= control.maxSubgroupSize) {
		out->max_subgroups = control.maxComputeWorkgroupSubgroups;
	}
	out->max_alloc_bytes = m3.maxMemoryAllocationSize;
	if (m4.maxBufferSize && m4.maxBufferSize < out->max_alloc_bytes) {
		out->max_alloc_bytes = m4.maxBufferSize;
	}
	out->preserve_nan[0] = fc.shaderSignedZeroInfNanPreserveFloat16 != 0;
	out->preserve_nan[1] = fc.shaderSignedZeroInfNanPreserveFloat32 != 0;
	out->preserve_nan[2] = fc.shaderSignedZeroInfNanPreserveFloat64 != 0;
	out->rte[0] = fc.shaderRoundingModeRTEFloat16 != 0;
	out->rte[1] = fc.shaderRoundingModeRTEFloat32 != 0;
	out->rte[2] = fc.shaderRoundingModeRTEFloat64 != 0;
	out->rounding_independence = fc.roundingModeIndependence;
	out->denorm_independence = fc.denormBehaviorIndependence;
	out->denorm_preserve[0] = fc.shaderDenormPreserveFloat16 != 0;
	out->denorm_preserve[1] = fc.shaderDenormPreserveFloat32 != 0;
	out->denorm_preserve[2] = fc.shaderDenormPreserveFloat64 != 0;
}

static void query_features(PFN_vkGetPhysicalDeviceFeatures2 get, VkPhysicalDevice phys, const VkExtensionProperties *exts,
	uint32_t n, agpu_phys *out) {
	void *head = NULL;
	VkPhysicalDevice16BitStorageFeatures s16 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES};
	VkPhysicalDevice8BitStorageFeatures s8 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES};
	VkPhysicalDeviceShaderFloat16Int8Features f16 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES};
	CHAIN(&head, &s16);
	if (out->api_version >= API_1_2 || has_extension(exts, n, "VK_KHR_8bit_storage")) {
		CHAIN(&head, &s8);
	}
	if (out->api_version >= API_1_2 || has_extension(exts, n, "VK_KHR_shader_float16_int8")) {
		CHAIN(&head, &f16);
	}
	VkPhysicalDeviceSubgroupSizeControlFeatures control = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES};
	if (has_size_control(out, exts, n)) {
		CHAIN(&head, &control);
	}
	VkPhysicalDeviceFeatures2 f = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = head};
	get(phys, &f);
	if (!control.subgroupSizeControl || !control.computeFullSubgroups) {
		out->max_subgroups = 0;
	}
	out->f16_arith = f16.shaderFloat16 != 0;
	out->f16_storage = s16.storageBuffer16BitAccess != 0;
	out->u8_storage = s8.storageBuffer8BitAccess != 0;
	out->i64 = f.features.shaderInt64 != 0;
	out->f64 = f.features.shaderFloat64 != 0;
}

// find_queue_family prefers one without graphics: it does not wait behind the desktop.
static int32_t find_queue_family(PFN_vkGetPhysicalDeviceQueueFamilyProperties get, VkPhysicalDevice phys, uint32_t *timestamp_bits) {
	VkQueueFamilyProperties families[32];
	uint32_t n = 32;
	int32_t found = -1;
	get(phys, &n, families);
	for (uint32_t i = 0; i < n; i++) {
		if (families[i].queueCount == 0 || !(families[i].queueFlags & VK_QUEUE_COMPUTE_BIT)) {
			continue;
		}
		if (!(families[i].queueFlags & VK_QUEUE_GRAPHICS_BIT)) {
			*timestamp_bits = families[i].timestampValidBits;
			return (int32_t)i;
		}
		if (found < 0) {
			found = (int32_t)i;
			*timestamp_bits = families[i].timestampValidBits;
		}
	}
	return found;
}

VkResult agpu_phys_query(void *gipa, VkInstance instance, VkPhysicalDevice phys, agpu_phys *out) {
	INSTANCE_FN(instance, vkGetPhysicalDeviceProperties);
	INSTANCE_FN(instance, vkGetPhysicalDeviceProperties2);
	INSTANCE_FN(instance, vkGetPhysicalDeviceFeatures2);
	INSTANCE_FN(instance, vkGetPhysicalDeviceQueueFamilyProperties);
	INSTANCE_FN(instance, vkGetPhysicalDeviceMemoryProperties);
	memset(out, 0, sizeof *out);
	out->queue_family = -1;
	if (!vkGetPhysicalDeviceProperties) {
		return VK_ERROR_INITIALIZATION_FAILED;
	}
	VkPhysicalDeviceProperties p;
	memset(&p, 0, sizeof p);
	vkGetPhysicalDeviceProperties(phys, &p);
	out->api_version = p.apiVersion;
	out->driver_version = p.driverVersion;
	out->vendor_id = p.vendorID;
	out->device_id = p.deviceID;
	out->type = p.deviceType;
	out->limits = p.limits;
	memcpy(out->name, p.deviceName, sizeof out->name);
	memcpy(out->cache_uuid, p.pipelineCacheUUID, VK_UUID_SIZE);
	if (p.apiVersion < API_1_1) {
		return VK_SUCCESS;
	}
	if (!vkGetPhysicalDeviceProperties2 || !vkGetPhysicalDeviceFeatures2 || !vkGetPhysicalDeviceQueueFamilyProperties ||
		!vkGetPhysicalDeviceMemoryProperties) {
		return VK_ERROR_INITIALIZATION_FAILED;
	}
	VkExtensionProperties *exts = NULL;
	uint32_t n = 0;
	VkResult r = device_extensions(gipa, instance, phys, &exts, &n);
	if (r < 0) {
		return r;
	}
	query_properties(vkGetPhysicalDeviceProperties2, phys, exts, n, out);
	query_features(vkGetPhysicalDeviceFeatures2, phys, exts, n, out);
	out->portability = (uint8_t)has_extension(exts, n, "VK_KHR_portability_subset");
	free(exts);
	vkGetPhysicalDeviceMemoryProperties(phys, &out->memory);
	out->queue_family = find_queue_family(vkGetPhysicalDeviceQueueFamilyProperties, phys, &out->timestamp_bits);
	return VK_SUCCESS;
}

VkResult agpu_device_create(void *gipa, VkInstance instance, VkPhysicalDevice phys, const agpu_phys *info, VkDevice *out) {
	INSTANCE_FN(instance, vkCreateDevice);
	if (!vkCreateDevice) {
		return VK_ERROR_INITIALIZATION_FAILED;
	}
	const char *names[5];
	uint32_t num_names = 0;
	void *head = NULL;
	VkPhysicalDevice16BitStorageFeatures s16 = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES, .storageBuffer16BitAccess = 1};
	VkPhysicalDevice8BitStorageFeatures s8 = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES, .storageBuffer8BitAccess = 1};
	VkPhysicalDeviceShaderFloat16Int8Features f16 = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES, .shaderFloat16 = 1};
	int old = info->api_version < API_1_2; // then these are extensions
	if (info->f16_storage) {
		CHAIN(&head, &s16);
	}
	if (info->u8_storage) {
		CHAIN(&head, &s8);
		if (old) {
			names[num_names++] = "VK_KHR_8bit_storage";
		}
	}
	if (info->f16_arith) {
		CHAIN(&head, &f16);
		if (old) {
			names[num_names++] = "VK_KHR_shader_float16_int8";
		}
	}
	int controls = 0;
	for (int i = 0; i < 3; i++) {
		controls |= info->preserve_nan[i] | info->rte[i] | info->denorm_preserve[i];
	}
	if (old && controls) {
		names[num_names++] = "VK_KHR_shader_float_controls";
	}
	VkPhysicalDeviceSubgroupSizeControlFeatures control = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES, .subgroupSizeControl = 1, .computeFullSubgroups = 1};
	if (info->max_subgroups) {
		CHAIN(&head, &control);
		if (info->api_version < API_1_3) {
			names[num_names++] = SIZE_CONTROL;
		}
	}
	if (info->portability) {
		names[num_names++] = "VK_KHR_portability_subset";
	}
	VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = head};
	features.features.shaderInt64 = info->i64;
	features.features.shaderFloat64 = info->f64;
	float priority = 0.5f;
	VkDeviceQueueCreateInfo queue = {
		.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
		.queueFamilyIndex = (uint32_t)info->queue_family,
		.queueCount = 1,
		.pQueuePriorities = &priority,
	};
	VkDeviceCreateInfo create = {
		.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
		.pNext = &features,
		.queueCreateInfoCount = 1,
		.pQueueCreateInfos = &queue,
		.enabledExtensionCount = num_names,
		.ppEnabledExtensionNames = names,
	};
	return vkCreateDevice(phys, &create, NULL, out);
}
