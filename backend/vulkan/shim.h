// The C side of the Vulkan driver: what is unsafe or slow through the Go binding. Every function that takes an array of
// structures is here, and so is the recording of whole batches, at one call from Go a batch.
#ifndef ANYGPU_VULKAN_SHIM_H
#define ANYGPU_VULKAN_SHIM_H

#include "vk_min.h"

// agpu_loader_open opens the Vulkan loader library of the given name and returns its vkGetInstanceProcAddr. On failure
// it returns NULL and the system's reason in err. The library stays open.
void *agpu_loader_open(const char *name, char *err, size_t err_size);

// agpu_instance_version returns the loader's API version.
uint32_t agpu_instance_version(void *gipa);

// agpu_instance_create makes an instance that also lists portability drivers, where the loader asks for that
// (MoltenVK). VK_ERROR_EXTENSION_NOT_PRESENT: the loader does not need it, make an ordinary instance.
VkResult agpu_instance_create(void *gipa, uint32_t api_version, VkInstance *out);

// What agpu_phys_query finds out about a device.
typedef struct agpu_phys {
	uint32_t api_version, driver_version, vendor_id, device_id;
	int32_t type, driver_id;
	char name[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE];
	char driver_name[VK_MAX_DRIVER_NAME_SIZE], driver_info[VK_MAX_DRIVER_INFO_SIZE];
	uint8_t cache_uuid[VK_UUID_SIZE], device_uuid[VK_UUID_SIZE];
	VkPhysicalDeviceLimits limits;
	VkPhysicalDeviceMemoryProperties memory;
	uint64_t max_alloc_bytes; // 0: not reported
	uint32_t subgroup_size;
	uint32_t max_subgroups; // whole subgroups of a workgroup in which kernels can exchange values; 0: they cannot
	int32_t queue_family; // with compute, without graphics if there is one; -1: none
	uint32_t timestamp_bits; // of that family's timestamps; 0: it has none
	uint8_t f16_arith, f16_storage, u8_storage, i64, f64;
	// Floating-point controls by width: 16, 32, 64 bits.
	uint8_t preserve_nan[3], rte[3], denorm_preserve[3];
	int32_t rounding_independence, denorm_independence;
	uint8_t portability; // has VK_KHR_portability_subset, which then must be enabled
} agpu_phys;

// agpu_phys_query fills out, of a device of Vulkan 1.1 or later; of an older one only the properties of 1.0.
VkResult agpu_phys_query(void *gipa, VkInstance instance, VkPhysicalDevice phys, agpu_phys *out);

// agpu_device_create makes a logical device with one queue and the features that phys says it has.
VkResult agpu_device_create(void *gipa, VkInstance instance, VkPhysicalDevice phys, const agpu_phys *info, VkDevice *out);

// The functions of one device.
typedef struct agpu_device agpu_device;

// agpu_device_load finds the device's functions; NULL if memory or a function is missing.
agpu_device *agpu_device_load(void *gipa, VkInstance instance, VkDevice device, VkQueue queue);
void agpu_device_unload(agpu_device *d);

// A compute pipeline with its layouts: set 0 has storage buffers, then uniform texel buffers.
typedef struct agpu_program {
	VkDescriptorSetLayout set_layout;
	VkPipelineLayout layout;
	VkPipeline pipeline;
} agpu_program;

// agpu_program_create compiles SPIR-V with entry point main; *stage names the call that failed. If subgroup is not 0, workgroups are whole
// subgroups of that size (see agpu_phys.max_subgroups).
VkResult agpu_program_create(agpu_device *d, VkPipelineCache cache, const uint32_t *code, size_t words, uint32_t buffers,
	uint32_t texels, uint32_t push_bytes, uint32_t subgroup, agpu_program *out, const char **stage);
void agpu_program_destroy(agpu_device *d, const agpu_program *p);

// agpu_view_create makes the view of a range of a buffer that a uniform texel buffer is.
VkResult agpu_view_create(agpu_device *d, VkBuffer buffer, VkFormat format, VkDeviceSize offset, VkDeviceSize range, VkBufferView *out);
void agpu_view_destroy(agpu_device *d, VkBufferView view);

// agpu_pool_create makes a descriptor pool for sets sets of storage buffers and uniform texel buffers.
VkResult agpu_pool_create(agpu_device *d, uint32_t sets, uint32_t buffers, uint32_t texels, VkDescriptorPool *out);

enum { AGPU_DISPATCH, AGPU_COPY };

// One command of a batch.
typedef struct agpu_op {
	uint32_t kind;
	uint32_t barrier; // wait for everything before, and see its writes
	uint32_t timed; // AGPU_DISPATCH: write timestamps before and after
	// AGPU_DISPATCH. Regions, views and parameters are taken in turn from the arrays of the batch.
	agpu_program program;
	uint32_t groups[3], regions, texels, params;
	// AGPU_COPY.
	VkBuffer src, dst;
	uint64_t src_offset, dst_offset, size;
} agpu_op;

// agpu_record records a batch; descriptor sets come from pool, which was reset. With host_read the host sees the device's
// writes once the fence is signaled. The timed commands write their two timestamps to queries, in order, which has room for num_queries.
// Not for two threads at once with one device.
VkResult agpu_record(agpu_device *d, VkCommandBuffer cmd, VkDescriptorPool pool, const agpu_op *ops, uint32_t num_ops,
	const VkDescriptorBufferInfo *regions, const VkBufferView *views, const uint32_t *params, uint32_t host_read, VkQueryPool queries, uint32_t num_queries);

VkResult agpu_submit(agpu_device *d, VkCommandBuffer cmd, VkFence fence);

#endif
